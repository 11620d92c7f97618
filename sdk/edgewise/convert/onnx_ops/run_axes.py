"""Axes that only the run knows: moved to the end, where ops find them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, counted, reshaped
from edgewise.convert.run_time import dims, integer
from edgewise.dims import Shape
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add
from edgewise.ops.checks import may_equal
from edgewise.ops.choose import Where
from edgewise.ops.dynamic import Permute
from edgewise.ops.index import Gather
from edgewise.ops.logic import Equal
from edgewise.ops.order import TopK
from edgewise.ops.reduce import ReduceSum
from edgewise.types import DType


def reduced(
    ctx: OpContext,
    axes: Value,
    reduce: Callable[[Value, tuple[int, ...]], Value],
    *,
    keepdims: bool,
) -> Value:
    """Input 0 reduced along ``axes``, a vector of known length."""
    x = ctx[0]
    rank, count = x.type.rank, ctx.whole(axes.type.elements)
    if count > rank:
        raise ctx.malformed(f"reduces {count} axes of {x.type}")
    hit = _hit(ctx, axes, rank, 0)
    moved = ctx.emit(Permute(ctx.fresh(rank)), x, _order(ctx, hit, 0))
    y = reduce(moved, tuple(range(rank - count, rank)))
    if not keepdims:
        return y
    one, shape = ctx.constant(np.array(1)), dims(ctx, x.type.shape)
    kept = ctx.emit(Where(), as_type(ctx, hit, DType.BOOL), one, shape)
    return reshaped(ctx, y, *ctx.read(kept))


def along(
    ctx: OpContext,
    axis: Value,
    apply: Callable[[Value, int], Value],
    *,
    sizes: Shape | None = None,
    fixed: int = 0,
) -> Value:
    """``apply`` to input 0 along ``axis``; the result with all axes where they were.

    Args:
        ctx: The node.
        axis: One number.
        apply: Of the input and the place where its axis is now.
        sizes: Those of the result, where they are known.
        fixed: Axes at the end that stay there.
    """
    x = ctx[0]
    rank = x.type.rank
    if not may_equal(axis.type.elements, 1):
        raise ctx.malformed(f"its axis is {axis.type}; want one number")
    order = _order(ctx, _hit(ctx, axis, rank, fixed), fixed)
    free = rank - fixed
    before = (*ctx.fresh(free), *x.type.shape[free:])
    y = apply(ctx.emit(Permute(before), x, order), free - 1)
    after = (*ctx.fresh(free), *y.type.shape[free:])
    return ctx.emit(Permute(sizes or after), y, _sorted(ctx, order))


def _hit(ctx: OpContext, axes: Value, rank: int, fixed: int) -> Value:
    """1 for each of ``axes``, else 0; a wrong one, or one twice, stops the run."""
    places = counted(ctx, 0, rank)
    axes = integer(ctx, reshaped(ctx, axes, axes.type.elements))
    same = ctx.emit(
        Equal(),
        reshaped(ctx, places, rank, 1),
        ctx.emit(Gather(0), places, axes),
    )
    times = ctx.emit(ReduceSum((1,), False), integer(ctx, same))
    # What may be hit counts from 0, what may not from 2: beyond the table is an error.
    begin = np.array([0] * (rank - fixed) + [2] * fixed)
    table = ctx.constant(np.array([0, 1, 0][: 2 + bool(fixed)]))
    return ctx.emit(Gather(0), table, ctx.emit(Add(), times, ctx.constant(begin)))


def _order(ctx: OpContext, hit: Value, fixed: int) -> Value:
    """All axes: those that are not hit, those that are, those that are fixed."""
    rank = ctx.whole(hit.type.elements)
    end = ctx.constant(np.array([0] * (rank - fixed) + [2] * fixed))
    return _sorted(ctx, ctx.emit(Add(), hit, end))


def _sorted(ctx: OpContext, keys: Value) -> Value:
    """Places of the keys in rising order; equal ones stay as they are."""
    return ctx.emit_all(TopK(ctx.whole(keys.type.elements), 0, False), keys)[1]
