"""Steps between products over bytes: between pairs of operators, as those are."""

from __future__ import annotations

from edgewise.convert.to_onnx.elementwise import operands, second
from edgewise.convert.to_onnx.quantize import pair_of
from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.spatial import windows
from edgewise.convert.to_onnx.writer import At
from edgewise.ops.byte_between import (
    ByteAdd,
    ByteAveragePool,
    ByteMean,
    ByteMul,
    ByteTable,
)
from edgewise.types import DType


@writes(ByteTable)
def byte_table(at: At) -> Written:
    """Rows of a table; below zero they count from its end."""
    image = at.writer.is_image(at.x)
    name = second(at, at.x, at.x.type.rank) if image else at.name(0)
    rows = at.cast(name, DType.I32)
    form = Image if image else str
    return form(at.emit("Gather", at.name(1), rows, axis=0))


@writes(ByteAdd, ByteMul)
def byte_pair(at: At) -> Written:
    """An Add or a Mul of real numbers."""
    op, (names, form) = at.op, operands(at)
    ends = ((op.a_scale, op.a_zero), (op.b_scale, op.b_zero))
    kind = at.x.type.dtype
    real = [
        at.emit("DequantizeLinear", name, *pair_of(at, *end, kind))
        for name, end in zip(names, ends, strict=True)
    ]
    return form(_made(at, at.emit("Add" if isinstance(op, ByteAdd) else "Mul", *real)))


@writes(ByteMean)
def byte_mean(at: At) -> Written:
    """A pool over the whole image."""
    return Image(_made(at, at.emit("GlobalAveragePool", _real(at))))


@writes(ByteAveragePool)
def byte_average_pool(at: At) -> Written:
    """A pool of real numbers."""
    counted = int(at.op.count_include_pad)
    more = windows(at.op) | {"count_include_pad": counted}
    if more["dilations"] == [1, 1]:
        del more["dilations"]  # onnxruntime fails where it is said
    return Image(_made(at, at.emit("AveragePool", _real(at), **more)))


def _real(at: At) -> str:
    pair = pair_of(at, at.op.x_scale, at.op.x_zero, at.x.type.dtype)
    return at.emit("DequantizeLinear", at.image(0), *pair)


def _made(at: At, real: str) -> str:
    pair = pair_of(at, at.op.y_scale, at.op.y_zero, at.y.type.dtype)
    return at.emit("QuantizeLinear", real, *pair)
