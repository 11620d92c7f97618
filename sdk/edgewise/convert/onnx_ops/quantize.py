"""ONNX operators between real numbers and small integers or floats."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.binary import Div, Maximum, Minimum, Mul, Sub
from edgewise.ops.choose import Cast, Clip
from edgewise.ops.create import Fill
from edgewise.ops.index import Gather
from edgewise.ops.quantize import Dequantize, Quantize
from edgewise.ops.reduce import ReduceMax, ReduceMin
from edgewise.ops.shape import Reshape
from edgewise.ops.unary import Neg, Round
from edgewise.types import DType

USUAL = frozenset({DType.F32, DType.F16, DType.BF16, DType.F64})


@onnx_op("QuantizeLinear", since=10)
def _quantize(ctx: OpContext) -> Value:
    x, scale, zero = ctx[0], ctx[1], ctx.optional(2)
    kind = zero.type.dtype if zero is not None else _output(ctx, DType.U8)
    ctx.ignore("output_dtype")
    saturate, precision = ctx.attribute("saturate", 1), ctx.attribute("precision", 0)
    # The scale's type is that of the division, unless it is too small for one.
    division = scale.type.dtype if scale.type.dtype in USUAL else DType.F32
    if precision:
        division = ctx.element_type(precision)
    x, scale = _cast(ctx, x, division), _cast(ctx, scale, division)
    axis, block = _granularity(ctx)
    if kind.is_integer:
        return ctx.emit(Quantize(axis, block), x, _whole(ctx, scale), _zero(ctx, kind))
    quotient = ctx.emit(Div(), x, _spread(ctx, scale, axis, block))
    return ctx.emit(Cast(kind.value, bool(saturate)), quotient)


@onnx_op("DequantizeLinear", since=10)
def _dequantize(ctx: OpContext) -> Value:
    q, scale = ctx[0], ctx[1]
    kind = _output(ctx, scale.type.dtype)
    product = kind if kind in USUAL else DType.F32
    scale, (axis, block) = _cast(ctx, scale, product), _granularity(ctx)
    if q.type.dtype.is_integer:
        zero = _zero(ctx, q.type.dtype)
        y = ctx.emit(Dequantize(axis, block), q, _whole(ctx, scale), zero)
    else:  # small floats have no zero point but zero
        y = _cast(ctx, q, product)
        y = ctx.emit(Mul(), y, _spread(ctx, scale, axis, block))
    return _cast(ctx, y, kind)


def _output(ctx: OpContext, default: DType) -> DType:
    code = ctx.attribute("output_dtype", 0)
    return ctx.element_type(code) if code else default


def _cast(ctx: OpContext, x: Value, kind: DType) -> Value:
    return x if x.type.dtype is kind else ctx.emit(Cast(kind.value), x)


def _granularity(ctx: OpContext) -> tuple[int, int]:
    """The axis that scales go along, and how many elements share one (0: all)."""
    axis, block = int(ctx.attribute("axis", 1)), int(ctx.attribute("block_size", 0))
    rank, scale = ctx[0].type.rank, ctx[1].type
    if not scale.rank or scale.elements == 1:
        return 0, 0  # one scale for all: the axis says nothing
    if block and scale.rank == rank:
        return ctx.normal(axis, rank), block
    if block < 0 or scale.rank != 1:
        raise ctx.malformed(f"scales {scale} for {ctx[0].type} in blocks of {block}")
    return ctx.normal(axis, rank), 0


def _whole(ctx: OpContext, pair: Value) -> Value:
    """A scale or zero point of one element as a scalar."""
    one = pair.type.rank and pair.type.elements == 1
    return ctx.emit(Reshape(()), pair) if one else pair


def _spread(ctx: OpContext, scale: Value, axis: int, block: int) -> Value:
    """The scale in a shape that broadcasts over the tensor."""
    scale = _whole(ctx, scale)
    if not scale.type.rank:
        return scale
    if block:
        places = np.arange(ctx.whole(ctx[0].type.shape[axis])) // block
        return ctx.emit(Gather(axis), scale, ctx.constant(places))
    shape = [1] * ctx[0].type.rank
    sizes = (*shape[:axis], *scale.type.shape, *shape[axis + 1 :])
    return ctx.emit(Reshape(sizes), scale)


def _zero(ctx: OpContext, dtype: DType) -> Value:
    zero, scale = ctx.optional(2), ctx[1].type
    shape = () if scale.elements == 1 else scale.shape
    if zero is None:
        return ctx.emit(Fill(shape), ctx.constant(np.zeros((), dtype.numpy)))
    return zero if zero.type.shape == shape else ctx.emit(Reshape(shape), zero)


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
