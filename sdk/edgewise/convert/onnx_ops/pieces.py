"""Small pieces that importers build compositions of."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops.choose import Cast
from edgewise.ops.create import Arange
from edgewise.ops.shape import Reshape, Slice
from edgewise.types import DType


def part(
    ctx: OpContext, x: Value, axis: int, start: Dim, size: Dim, step: int = 1
) -> Value:
    """``size`` elements of an axis, from ``start`` on; the whole of all others."""
    starts: list[Dim] = [0] * x.type.rank
    sizes, steps = list(x.type.shape), [1] * x.type.rank
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return ctx.emit(Slice(tuple(starts), tuple(sizes), tuple(steps)), x)


def as_type(ctx: OpContext, x: Value, dtype: DType) -> Value:
    """``x`` with elements of ``dtype``."""
    return x if x.type.dtype is dtype else ctx.emit(Cast(dtype.value), x)


def reshaped(ctx: OpContext, x: Value, *shape: Dim) -> Value:
    """``x`` in another shape."""
    return x if x.type.shape == shape else ctx.emit(Reshape(shape), x)


def counted(ctx: OpContext, start: Dim, count: Dim, *shape: Dim) -> Value:
    """``start``, ``start + 1``, …: ``count`` of them, in a shape of as many."""
    return reshaped(ctx, ctx.emit(Arange(start, count, 1)), *(shape or (count,)))


def scalar(ctx: OpContext, index: int) -> Value:
    """Input ``index``, one number, as a scalar."""
    ctx.pin(index, 1)
    x = ctx[index]
    if x.type.elements != 1:
        raise ctx.malformed(f"its input {index} is {x.type}; want one number")
    return reshaped(ctx, x)
