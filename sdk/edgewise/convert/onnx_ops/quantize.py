"""ONNX operators between real numbers and small integers."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.binary import Div, Maximum, Minimum, Sub
from edgewise.ops.choose import Cast, Clip
from edgewise.ops.create import Fill
from edgewise.ops.quantize import Dequantize, Quantize
from edgewise.ops.reduce import ReduceMax, ReduceMin
from edgewise.ops.shape import Reshape
from edgewise.ops.unary import Neg, Round
from edgewise.types import DType


@onnx_op("QuantizeLinear", since=10)
def _quantize(ctx: OpContext) -> Value:
    code = ctx.attribute("output_dtype", 0)
    dtype = ctx.element_type(code) if code else DType.U8
    return ctx.emit(Quantize(_axis(ctx)), ctx[0], ctx[1], _zero(ctx, dtype))


@onnx_op("DequantizeLinear", since=10)
def _dequantize(ctx: OpContext) -> Value:
    zero = _zero(ctx, ctx[0].type.dtype)
    return ctx.emit(Dequantize(_axis(ctx)), ctx[0], ctx[1], zero)


def _axis(ctx: OpContext) -> int:
    if ctx.attribute("block_size", 0):
        raise ctx.unsupported("shares scales between blocks", "use a scale per axis")
    if not ctx.attribute("saturate", 1) or ctx.attribute("precision", 0):
        raise ctx.unsupported("has saturate=0 or a precision", "leave them out")
    axis = int(ctx.attribute("axis", 1))
    rank = ctx[0].type.rank
    if ctx[1].type.elements == 1 or not ctx[1].type.rank:
        return 0  # one scale for all: the axis says nothing
    return ctx.normal(axis, rank)


def _zero(ctx: OpContext, dtype: DType) -> Value:
    zero = ctx.optional(2)
    if zero is not None:
        shape = ctx[1].type.shape
        return zero if zero.type.shape == shape else ctx.emit(Reshape(shape), zero)
    return ctx.emit(Fill(ctx[1].type.shape), ctx.constant(np.zeros((), dtype.numpy)))


@onnx_op("DynamicQuantizeLinear", since=11)
def _dynamic_quantize(ctx: OpContext) -> tuple[Value, ...]:
    x = ctx[0]
    axes, nought = tuple(range(x.type.rank)), ctx.like(0, x)
    high = ctx.emit(Maximum(), ctx.emit(ReduceMax(axes, False), x), nought)
    low = ctx.emit(Minimum(), ctx.emit(ReduceMin(axes, False), x), nought)
    scale = ctx.emit(Div(), ctx.emit(Sub(), high, low), ctx.like(255, x))
    zero = ctx.emit(Div(), ctx.emit(Neg(), low), scale)
    zero = ctx.emit(Clip(0.0, 255.0), ctx.emit(Round(), zero))
    zero = ctx.emit(Cast(DType.U8.value), zero)
    return ctx.emit(Quantize(0), x, scale, zero), scale, zero
