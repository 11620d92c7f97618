"""Whole numbers that stand for fractions, and exact products of them."""

from __future__ import annotations

import numpy as np

from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.spatial import windows
from edgewise.convert.to_onnx.writer import At
from edgewise.ops import quantize as quant
from edgewise.ops.integer import ConvInteger, MatmulInteger, Requantize
from edgewise.types import DType


@writes(quant.Quantize)
def quantize(at: At) -> Written:
    """Fractions to whole numbers."""
    return at.emit("QuantizeLinear", *at.names(), **_along(at))


@writes(quant.Dequantize)
def dequantize(at: At) -> Written:
    """Whole numbers to fractions."""
    return at.emit("DequantizeLinear", *at.names(), **_along(at))


@writes(quant.BytePlanes)
def byte_planes(at: At) -> Written:
    """Whole numbers of 16 bits, taken apart in 32."""
    pair = pair_of(at, at.op.scale, at.op.zero, DType.I16)
    number = at.cast(at.emit("QuantizeLinear", at.name(0), *pair), DType.I32)
    least, byte = (at.writer.constant(np.asarray(n, np.int32)) for n in (32768, 256))
    moved = at.emit("Add", number, least)  # a multiple of 256: no number is below 0
    above, below = at.emit("Div", moved, byte), at.emit("Mod", moved, byte)
    return at.cast(above, DType.U8), at.cast(below, DType.U8)


def _along(at: At) -> dict[str, int]:
    if not at.value(1).type.rank:
        return {}
    more = {"block_size": at.op.block} if at.op.block else {}
    return {"axis": at.op.axis, **more}


@writes(MatmulInteger)
def matmul_integer(at: At) -> Written:
    """Exact products of bytes."""
    return at.emit("MatMulInteger", *at.names())


@writes(ConvInteger)
def conv_integer(at: At) -> Written:
    """The same over windows."""
    names = (at.image(0), *at.names()[1:])
    return Image(at.emit("ConvInteger", *names, **windows(at.op), group=at.op.groups))


@writes(Requantize)
def requantize(at: At) -> Written:
    """In double precision, where the product is exact; NaN counts as zero."""
    zero = at.value(2).type.dtype
    low, high = (float(limit) for limit in quant.limits(zero))
    wide, scale = at.cast(at.name(0), DType.F64), at.cast(at.name(1), DType.F64)
    steps = at.emit("Round", at.emit("Mul", wide, scale))
    none = at.writer.constant(np.asarray(0.0))
    steps = at.emit("Where", at.emit("IsNaN", steps), none, steps)
    moved = at.emit("Add", steps, at.cast(at.name(2), DType.F64))
    bounds = (at.writer.constant(np.asarray(bound)) for bound in (low, high))
    return at.cast(at.emit("Clip", moved, *bounds), zero)


def pair_of(at: At, scale: float, zero: int, kind: DType) -> tuple[str, str]:
    """Names of a scale and a zero point."""
    numbers = np.asarray(scale, np.float32), np.asarray(zero, kind.numpy)
    given = [at.writer.constant(number) for number in numbers]
    return given[0], given[1]
