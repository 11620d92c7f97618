"""Products over bytes as ONNX's quantised models have them: between pairs of operators.

``QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(w)))``; the scale of the
image is a part of the weight's.
"""

from __future__ import annotations

import numpy as np

from edgewise.convert.to_onnx.activation import ended
from edgewise.convert.to_onnx.elementwise import second
from edgewise.convert.to_onnx.quantize import pair_of
from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.spatial import windows
from edgewise.convert.to_onnx.writer import At
from edgewise.ir.graph import Constant, Variable
from edgewise.ops.byte_products import ByteConv, ByteDepthwiseConv, ByteLinear
from edgewise.ops.pack import QUAD, PackQuads, PackTaps
from edgewise.types import DType


@writes(ByteLinear)
def byte_linear(at: At) -> Written:
    """A MatMul of real numbers."""
    name, axes = _weight(at)
    if axes not in ((0, 1), (1, 0)):
        raise at.refuse("its weight is no matrix")
    outputs = axes[-1]
    weight = _real_weight(at, _filled(at, name, 1 - outputs), outputs)
    if outputs == 0:
        weight = at.emit("Transpose", weight, perm=[1, 0])
    sums = at.emit("MatMul", _real(at, at.name(0), at.op.x_zero), weight)
    if at.given(3) is not None:
        sums = at.emit("Add", sums, at.name(3))
    if at.given(4) is not None:
        sums = at.emit("Add", sums, _residual(at, at.name(4)))
    return _finished(at, sums)


@writes(ByteConv, ByteDepthwiseConv)
def byte_conv(at: At) -> Written:
    """A Conv of real numbers."""
    op = at.op
    name, axes = _weight(at)
    depthwise = isinstance(op, ByteDepthwiseConv)
    if not depthwise and axes != (2, 3, 1, 0):
        raise at.refuse("its weight is not that of a convolution")
    weight = _real_weight(at, name if depthwise else _filled(at, name, 1), 0)
    groups = op.channels if depthwise else op.groups
    image = _real(at, at.image(0), op.x_zero)
    sums = at.emit("Conv", image, weight, at.name(3), **windows(op), group=groups)
    residual = at.given(4)
    if residual is not None:
        sums = at.emit("Add", sums, _residual(at, second(at, residual, 4)))
    return Image(_finished(at, sums))


def _weight(at: At) -> tuple[str, tuple[int, ...]]:
    """The name of a weight, and the order of its axes in memory."""
    op = at.value(1).op
    if isinstance(op, Constant) and isinstance(at.op, ByteDepthwiseConv):
        taps = op.array.T.reshape(-1, 1, *at.op.kernel)  # ones, where images are added
        return at.writer.constant(np.ascontiguousarray(taps)), ()
    info = at.writer.module.variables.get(op.key) if isinstance(op, Variable) else None
    packing = None if info is None else info.packing
    if info is None or not isinstance(packing, PackQuads | PackTaps):
        raise at.refuse("its weight is not stored")
    return info.key, packing.axes if isinstance(packing, PackQuads) else ()


def _filled(at: At, name: str, axis: int) -> str:
    """The weight with zeros for the channels that fill the image's up to fours."""
    op = at.value(1).op
    key = op.key if isinstance(op, Variable) else ""
    logical = at.writer.module.variables[key].logical
    short = -logical.dims[axis] % QUAD
    if not short:
        return name
    ends = [short if each == axis else 0 for each in range(logical.rank)]
    return at.emit("Pad", name, at.integers(*[0] * logical.rank, *ends))


def _real_weight(at: At, name: str, axis: int) -> str:
    return at.emit("DequantizeLinear", name, at.name(2), axis=axis)


def _real(at: At, name: str, zero: int, scale: float = 1.0) -> str:
    kind = at.x.type.dtype
    return at.emit("DequantizeLinear", name, *pair_of(at, scale, zero, kind))


def _residual(at: At, name: str) -> str:
    op = at.op
    if op.y_type == DType.F32.value:
        return name
    kind = at.y.type.dtype
    pair = pair_of(at, op.residual_scale, op.residual_zero, kind)
    return at.emit("DequantizeLinear", name, *pair)


def _finished(at: At, sums: str) -> str:
    """What follows the sums, and bytes again where the op makes bytes."""
    op, kind = at.op, at.y.type.dtype
    real = ended(at, sums, at.y.type.with_dtype(DType.F32))
    if kind is DType.F32:
        return real
    return at.emit("QuantizeLinear", real, *pair_of(at, op.y_scale, op.y_zero, kind))
