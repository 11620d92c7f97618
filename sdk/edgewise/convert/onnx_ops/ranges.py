"""ONNX Range: numbers one step apart; how many, only a run may know."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.symbolic_rules import at_least
from edgewise.convert.vectors import Vector
from edgewise.dims import Shape, ceildiv, maximum
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Div, Mul, Sub
from edgewise.ops.choose import Where
from edgewise.ops.create import Arange
from edgewise.ops.unary import Ceil, Isinf
from edgewise.types import DType


@onnx_op("Range", since=11)
def _range(ctx: OpContext) -> Value:
    for index in range(3):
        ctx.pin(index, 1)
        if ctx[index].type.elements != 1:
            raise ctx.malformed(f"its input {index} is no single number")
    if not ctx[0].type.dtype.is_integer:
        return _fractions(ctx)
    known = [ctx.known(index) for index in range(3)]
    return as_type(ctx, _whole(ctx, known), ctx[0].type.dtype)


def _whole(ctx: OpContext, known: list[Shape | None]) -> Value:
    start, end, step = (None if one is None else one[0] for one in known)
    if step == 0:
        raise ctx.malformed("its step is 0")
    if isinstance(step, int) and start is not None and end is not None:
        count = ceildiv(end - start, step)
        if not at_least(count, 0):
            count = maximum(count, 0)
        return ctx.emit(Arange(start, count, step))
    first, last, stride = (Vector.input(ctx, index) for index in range(3))
    (count,) = _count(first, last, stride).read()
    if start is not None and isinstance(step, int):
        return ctx.emit(Arange(start, count, step))
    turns = ctx.emit(Mul(), ctx.emit(Arange(0, count, 1)), stride.value)
    return ctx.emit(Add(), turns, first.value)


def _count(first: Vector, last: Vector, stride: Vector) -> Vector:
    """How many numbers there are; without a sign, 64 bits hold any distance."""
    back = stride.below(0)
    reach = back.where(first - last, last - first) - 1
    width = back.where(stride * -1, stride)
    count = reach.cast(DType.U64).quotient(width.cast(DType.U64)).cast(DType.I64) + 1
    return back.where(last.below(first), first.below(last)).where(count, 0)


def _fractions(ctx: OpContext) -> Value:
    dtype = ctx[0].type.dtype
    start, end, step = (_number(ctx, index) for index in range(3))
    wide = [as_type(ctx, number, DType.F64) for number in (start, end, step)]
    # Rounded as the numbers are, unless it is beyond them.
    reach = as_type(ctx, ctx.emit(Sub(), end, start), DType.F64)
    beyond = ctx.emit(Isinf(), reach)
    reach = ctx.emit(Where(), beyond, ctx.emit(Sub(), wide[1], wide[0]), reach)
    turns = ctx.emit(Div(), reach, wide[2])
    whole = as_type(ctx, ctx.emit(Ceil(), turns), DType.I64)
    (count,) = Vector(ctx, whole).at_least(0).read()
    # In double precision, where multiples neither overflow nor lose a whole number.
    numbers = as_type(ctx, ctx.emit(Arange(0, count, 1)), DType.F64)
    numbers = ctx.emit(Add(), ctx.emit(Mul(), numbers, wide[2]), wide[0])
    return as_type(ctx, numbers, dtype)


def _number(ctx: OpContext, index: int) -> Value:
    """Input ``index`` as a vector of one; a constant where it is stored."""
    array = ctx.constant_or_none(index)
    if array is None:
        return reshaped(ctx, ctx[index], 1)
    return ctx.constant(np.reshape(array, (1,)))
