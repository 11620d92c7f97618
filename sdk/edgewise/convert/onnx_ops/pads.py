"""ONNX Pad: how much is added, and with what, may both be for a run to know."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import scalar
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.vectors import Vector
from edgewise.dims import Dim, Shape
from edgewise.ir.graph import Value
from edgewise.ops.choose import Where
from edgewise.ops.create import Fill
from edgewise.ops.pad import MODES, Pad
from edgewise.ops.shape import Slice


class _Amounts(NamedTuple):
    """What goes away, then what comes: all begins, then all ends."""

    cut: Shape
    added: Shape

    def apply(self, ctx: OpContext, x: Value, mode: str, value: float) -> Value:
        """``x`` cropped and padded."""
        if any(size != 0 for size in self.cut):
            rank = x.type.rank
            ends = zip(x.type.shape, self.cut[:rank], self.cut[rank:], strict=True)
            sizes = tuple(size - begin - end for size, begin, end in ends)
            x = ctx.emit(Slice(self.cut[:rank], sizes, (1,) * rank), x)
        return ctx.emit(Pad(self.added, mode, value), x)


@onnx_op("Pad")
def _pad_attributes(ctx: OpContext) -> Value:
    pads = ctx.attribute("paddings" if ctx.opset < 2 else "pads")
    if pads is None or len(pads) != 2 * ctx[0].type.rank:
        raise ctx.malformed(f"its pads {pads} do not fit {ctx[0].type}")
    value = float(ctx.attribute("value", 0.0))
    return _Amounts((), tuple(pads)).apply(ctx, ctx[0], _mode(ctx), value)


@onnx_op("Pad", since=11)
def _pad(ctx: OpContext) -> Value:
    mode, amounts = _mode(ctx), _amounts(ctx)
    if ctx.optional(2) is None or mode != "constant":
        return amounts.apply(ctx, ctx[0], mode, 0.0)
    value = ctx.constant_or_none(2)
    if value is not None and value.size == 1:
        return amounts.apply(ctx, ctx[0], mode, float(value.reshape(())))
    y = amounts.apply(ctx, ctx[0], mode, 0.0)
    inside = ctx.emit(Fill(ctx[0].type.shape), ctx.constant(np.array(True)))
    kept = amounts.apply(ctx, inside, mode, 0.0)
    return ctx.emit(Where(), kept, y, scalar(ctx, 2))


def _mode(ctx: OpContext) -> str:
    mode = str(ctx.attribute("mode", "constant"))
    if mode not in MODES:
        raise ctx.malformed(f"mode={mode!r}; want one of {', '.join(MODES)}")
    return mode


def _amounts(ctx: OpContext) -> _Amounts:
    rank, sizes = ctx[0].type.rank, ctx.known(1)
    if sizes is None or ctx.late(3, 18):
        return _late_amounts(ctx, rank)
    axes = ctx.integers(3)
    places = tuple(range(rank)) if axes is None else axes
    if len(sizes) != 2 * len(places):
        raise ctx.malformed(f"its pads {list(sizes)} do not fit {len(places)} axes")
    pads: list[Dim] = [0] * (2 * rank)
    for position, axis in enumerate(places):
        normal = ctx.normal(axis, rank)
        pads[normal] = sizes[position]
        pads[rank + normal] = sizes[len(places) + position]
    return _Amounts((), tuple(pads))


def _late_amounts(ctx: OpContext, rank: int) -> _Amounts:
    given, none = Vector.input(ctx, 1), Vector.of(ctx, (0,) * (2 * rank))
    if ctx.optional(3) is not None:
        axes = Vector.input(ctx, 3).from_front(rank)
        given = none.put(axes.followed_by(axes + rank), given)
    if given.count != 2 * rank:
        raise ctx.malformed(f"has {given.count} pads for {ctx[0].type}")
    numbers = [n if isinstance(n, int) else None for n in given.known]
    # A size is never negative, so what is cropped is counted by itself.
    cut = (none - given).at_least(0)
    added = given.at_least(0)
    return _Amounts(
        cut.read([n if n is None else max(-n, 0) for n in numbers]),
        added.read([n if n is None else max(n, 0) for n in numbers]),
    )
