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


@onnx_op("Compress", since=9)
def _compress(ctx: OpContext) -> Value:
    x, condition = ctx[0], ctx[1]
    if condition.type.rank != 1:
        raise ctx.malformed(f"its condition is {condition.type}; want one axis")
    given = ctx.attribute("axis")
    if given is None:
        x, axis = reshaped(ctx, x, x.type.elements), 0
    else:
        axis = ctx.normal(int(given), x.type.rank)
    (size,) = ctx.fresh(1)
    places = reshaped(ctx, ctx.emit(NonZero(size), condition), size)
    return ctx.emit(Gather(axis), x, places)


@onnx_op("Unique", since=11)
def _unique(ctx: OpContext) -> tuple[Value, ...]:
    x, given = ctx[0], ctx.attribute("axis")
    if given is None:
        x, axis = reshaped(ctx, x, x.type.elements), 0
    else:
        axis = ctx.normal(int(given), x.type.rank)
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
