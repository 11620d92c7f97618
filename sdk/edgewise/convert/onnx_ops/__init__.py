"""What ONNX operators mean in core ops, one family a file."""

from edgewise.convert.onnx_ops import (
    activation,
    conv,
    elementwise,
    index,
    matmul,
    norm,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    shape,
    slices,
)
from edgewise.convert.onnx_ops.registry import importer_of, supported

FAMILIES = (
    activation,
    conv,
    elementwise,
    index,
    matmul,
    norm,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    shape,
    slices,
)

__all__ = ["FAMILIES", "importer_of", "supported"]
