"""Gradients of ops that move elements."""

from __future__ import annotations

from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops import (
    Concat,
    Expand,
    Pad,
    ReduceSum,
    Reshape,
    Slice,
    Tile,
    Transpose,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import sum_to


@gradient(Reshape)
def reshape(at: Adjoint) -> Gradients:
    """Under the old shape."""
    return (Reshape(at.x.type.shape)(at.dy),)


@gradient(Transpose)
def transpose(at: Adjoint) -> Gradients:
    """With the axes back in their places."""
    places = sorted(range(len(at.op.axes)), key=lambda j: at.op.axes[j])
    return (Transpose(tuple(places))(at.dy),)


@gradient(Concat)
def concat(at: Adjoint) -> Gradients:
    """Each its part."""
    start: Dim = 0
    parts = []
    for index in range(len(at.inputs)):
        value = at.input(index)
        parts.append(_part(at.dy, at.op.axis, start, value))
        start = start + value.type.shape[at.op.axis]
    return tuple(parts)


def _part(whole: Value, axis: int, start: Dim, like: Value) -> Value:
    starts = tuple(start if j == axis else 0 for j in range(like.type.rank))
    return Slice(starts, like.type.shape, (1,) * like.type.rank)(whole)


@gradient(Expand)
def expand(at: Adjoint) -> Gradients:
    """Copies summed up."""
    return (sum_to(at.dy, at.x),)


@gradient(Tile)
def tile(at: Adjoint) -> Gradients:
    """Repetitions summed up."""
    pairs = zip(at.op.repeats, at.x.type.shape, strict=True)
    shape = tuple(size for pair in pairs for size in pair)
    axes = tuple(range(0, len(shape), 2))
    return (ReduceSum(axes, keepdims=False)(Reshape(shape)(at.dy)),)


@gradient(Slice)
def slice_(at: Adjoint) -> Gradients:
    """Zeros around what was taken, and between where it was every second one."""
    grad, op = at.dy, at.op
    backwards = [axis for axis, step in enumerate(op.steps) if step < 0]
    grad = _reversed(grad, backwards)
    for axis, step in enumerate(op.steps):
        grad = _spaced(grad, axis, abs(step))
    begins, ends = [], []
    for axis, (start, step) in enumerate(zip(op.starts, op.steps, strict=True)):
        size = op.sizes[axis]
        if size == 0:
            begins.append(0)
            ends.append(at.x.type.shape[axis])
            continue
        begin = start if step > 0 else start + (size - 1) * step
        begins.append(begin)
        ends.append(at.x.type.shape[axis] - begin - grad.type.shape[axis])
    return (Pad((*begins, *ends))(grad),)


def _reversed(value: Value, axes: list[int]) -> Value:
    if not axes:
        return value
    shape = value.type.shape
    starts = tuple(size - 1 if j in axes else 0 for j, size in enumerate(shape))
    # The last element of nothing is none.
    starts = tuple(0 if size == 0 else s for s, size in zip(starts, shape, strict=True))
    steps = tuple(-1 if j in axes else 1 for j in range(len(shape)))
    return Slice(starts, shape, steps)(value)


def _spaced(value: Value, axis: int, step: int) -> Value:
    """The elements with ``step - 1`` zeros between them."""
    if step == 1 or value.type.shape[axis] in (0, 1):
        return value
    shape, rank = value.type.shape, value.type.rank
    ones = Reshape((*shape[: axis + 1], 1, *shape[axis + 1 :]))(value)
    pads = [0] * (2 * (rank + 1))
    pads[rank + 1 + axis + 1] = step - 1
    wide = Pad(tuple(pads))(ones)
    size = shape[axis] * step
    joined = Reshape((*shape[:axis], size, *shape[axis + 1 :]))(wide)
    # Nothing follows the last.
    kept = (*shape[:axis], size - (step - 1), *shape[axis + 1 :])
    return Slice((0,) * rank, kept, (1,) * rank)(joined)
