"""What ONNX operators mean in core ops, one family a file."""

from edgewise.convert.onnx_ops import (
    activation,
    arrange,
    attention,
    conv,
    einsum,
    elementwise,
    index,
    losses,
    matmul,
    norm,
    pool,
    quantize,
    random,
    recurrent,
    reduce,
    resize,
    rotary,
    select,
    shape,
    signal,
    slices,
    training,
)
from edgewise.convert.onnx_ops.registry import importer_of, supported

FAMILIES = (
    activation,
    arrange,
    attention,
    conv,
    einsum,
    elementwise,
    index,
    losses,
    matmul,
    norm,
    pool,
    quantize,
    random,
    recurrent,
    reduce,
    resize,
    rotary,
    select,
    shape,
    signal,
    slices,
    training,
)

__all__ = ["FAMILIES", "importer_of", "supported"]
