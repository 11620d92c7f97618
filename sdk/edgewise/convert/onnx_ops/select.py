"""ONNX operators that keep what values choose: how much, only the run knows."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import reshaped, scalar
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.dynamic import NonZero
from edgewise.ops.index import Gather
from edgewise.ops.select import NonMaxSuppression, Unique


@onnx_op("NonZero", since=9)
def _non_zero(ctx: OpContext) -> Value:
    return _places(ctx, 0)


def _places(ctx: OpContext, index: int) -> Value:
    """Where input ``index`` is not zero: a row for every axis; a number has one."""
    known, x = ctx.constant_or_none(index), ctx[index]
    if known is not None:
        return ctx.constant(np.asarray(np.nonzero(np.atleast_1d(known)), np.int64))
    if not x.type.rank:
        x = reshaped(ctx, x, 1)
    return ctx.emit(NonZero(*ctx.fresh(1)), x)


@onnx_op("Compress", since=9)
def _compress(ctx: OpContext) -> Value:
    x, condition = ctx[0], ctx[1]
    if condition.type.rank != 1:
        raise ctx.malformed(f"its condition is {condition.type}; want one axis")
    x, axis = _along(ctx, x)
    places = _places(ctx, 1)
    return ctx.emit(Gather(axis), x, reshaped(ctx, places, places.type.shape[1]))


def _along(ctx: OpContext, x: Value) -> tuple[Value, int]:
    """The input and its axis; without one, all elements in a row."""
    given = ctx.attribute("axis")
    if given is None:
        return reshaped(ctx, x, x.type.elements), 0
    return x, ctx.normal(int(given), x.type.rank)


@onnx_op("Unique", since=11)
def _unique(ctx: OpContext) -> tuple[Value, ...]:
    x, axis = _along(ctx, ctx[0])
    (size,) = ctx.fresh(1)
    ordered = bool(ctx.attribute("sorted", 1))
    return ctx.emit_all(Unique(size, axis, ordered), x)


@onnx_op("NonMaxSuppression", since=10)
def _non_max_suppression(ctx: OpContext) -> Value:
    (size,) = ctx.fresh(1)
    limits = [ctx.constant(np.array(0)), ctx.constant(np.array(0, np.float32)), None]
    for place, index in enumerate((2, 3, 4)):
        if ctx.optional(index) is not None:
            limits[place] = scalar(ctx, index)
    op = NonMaxSuppression(size, bool(ctx.attribute("center_point_box", 0)))
    return ctx.emit(op, ctx[0], ctx[1], *limits)
