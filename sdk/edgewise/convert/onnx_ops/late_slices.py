"""Ranges that only a run knows, clamped in the graph as ONNX has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from edgewise.convert.context import OpContext
from edgewise.convert.vectors import Vector
from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Mul
from edgewise.ops.create import Arange
from edgewise.ops.index import Gather
from edgewise.ops.shape import Slice


class _Ranges(NamedTuple):
    """Where ranges start, their step, and how many elements they have."""

    starts: Vector
    steps: Vector
    counts: Vector


def sliced(
    ctx: OpContext,
    axes: Sequence[int],
    steps: Sequence[int],
    given: Sequence[tuple[Dim, Dim] | None],
) -> Value:
    """The input within starts and ends that only a run knows, along known axes.

    Args:
        ctx: The operator; its inputs 1 and 2 are starts and ends.
        axes: An axis, counted from the front, for every start and end.
        steps: A step for each.
        given: First index and number of elements where they are known after all.
    """
    shape = ctx[0].type.shape
    sizes = Vector.of(ctx, tuple(shape[axis] for axis in axes))
    starts, ends = Vector.input(ctx, 1), Vector.input(ctx, 2)
    found = _ranges(starts, ends, Vector.of(ctx, tuple(steps)), sizes)
    firsts = found.starts.read([None if pair is None else pair[0] for pair in given])
    counts = found.counts.read([None if pair is None else pair[1] for pair in given])
    begins: list[Dim] = [0] * len(shape)
    lengths, strides = list(shape), [1] * len(shape)
    for axis, first, count, step in zip(axes, firsts, counts, steps, strict=True):
        begins[axis], lengths[axis], strides[axis] = first, count, step
    return ctx.emit(Slice(tuple(begins), tuple(lengths), tuple(strides)), ctx[0])


def picked(ctx: OpContext) -> Value:
    """The input within ranges whose axes or steps only a run knows: axis by axis."""
    x = ctx[0]
    shape = Vector.of(ctx, x.type.shape)
    starts, ends = Vector.input(ctx, 1), Vector.input(ctx, 2)
    steps = Vector.of(ctx, (1,) * starts.count)
    if ctx.optional(4) is not None:
        steps = Vector.input(ctx, 4)
    axes = Vector.of(ctx, tuple(range(starts.count)))
    if ctx.optional(3) is not None:
        axes = Vector.input(ctx, 3).from_front(x.type.rank)
    found = _ranges(starts, ends, steps, shape.take(axes))
    zeros = Vector.of(ctx, (0,) * x.type.rank)
    firsts, strides = zeros.put(axes, found.starts), (zeros + 1).put(axes, found.steps)
    for axis, count in enumerate(shape.put(axes, found.counts).read()):
        places = ctx.emit(Arange(0, count, 1))
        at = Vector.of(ctx, (axis,))
        places = ctx.emit(Mul(), places, strides.take(at).value)
        places = ctx.emit(Add(), places, firsts.take(at).value)
        x = ctx.emit(Gather(axis), x, places)
    return x


def _ranges(starts: Vector, ends: Vector, steps: Vector, sizes: Vector) -> _Ranges:
    # A step beyond the axis is as good as any longer one, which might overflow below.
    longest = sizes + 1
    steps = steps.at_least(longest * -1).at_most(longest)
    back = steps.below(0)
    last = back.where(sizes - 1, sizes)
    starts = starts.from_front(sizes).at_least(0).at_most(last)
    ends = ends.from_front(sizes).at_least(back.where(-1, 0)).at_most(last)
    # Rounded away from zero where the step has the sign of the distance.
    reach = ends - starts + steps - back.where(-1, 1)
    return _Ranges(starts.at_least(0), steps, reach.quotient(steps).at_least(0))
