"""The gradient of padding."""

from __future__ import annotations

from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops import Add, Concat, Pad, Slice
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(Pad)
def pad(at: Adjoint) -> Gradients:
    """What was copied is added to where it came from; a constant came from nowhere."""
    if at.op.mode == "constant":
        return (Pad(tuple(-1 * pad for pad in at.op.pads))(at.dy),)
    grad, rank = at.dy, at.x.type.rank
    pads = at.op.pads
    if not all(isinstance(pad, int) for pad in pads):
        raise at.refuse(f"only a run knows how much mode {at.op.mode!r} adds")
    # The axes were padded one after the other, so they are folded in reverse.
    for axis in reversed(range(rank)):
        begin, end = pads[axis], pads[axis + rank]
        if begin or end:
            grad = _folded(at, grad, axis, begin, end)
    return (grad,)


def _folded(at: Adjoint, grad: Value, axis: int, begin: int, end: int) -> Value:
    size = at.x.type.shape[axis]
    kept = size + min(begin, 0) + min(end, 0)
    before, behind = max(begin, 0), max(end, 0)
    total = _along(grad, axis, before, kept)
    if not isinstance(kept, int):
        raise at.refuse(f"only a run knows what mode {at.op.mode!r} copies")
    for j in range(before):
        total = _added(total, axis, _source(at.op.mode, j - before, kept), grad, j)
    for j in range(behind):
        place = before + kept + j
        total = _added(total, axis, _source(at.op.mode, kept + j, kept), grad, place)
    ends = [0] * (2 * grad.type.rank)
    ends[axis], ends[axis + grad.type.rank] = -min(begin, 0), -min(end, 0)
    return Pad(tuple(ends))(total)


def _source(mode: str, index: int, size: int) -> int:
    """Where the element at ``index``, beyond the ends, was copied from."""
    if mode == "wrap":
        return index % size
    if mode == "reflect":
        period = max(2 * (size - 1), 1)
        index = index % period
        return min(index, period - index) if size > 1 else 0
    return min(max(index, 0), size - 1)


def _along(value: Value, axis: int, start: Dim, size: Dim) -> Value:
    shape = list(value.type.shape)
    starts: list[Dim] = [0] * len(shape)
    starts[axis], shape[axis] = start, size
    return Slice(tuple(starts), tuple(shape), (1,) * len(shape))(value)


def _added(total: Value, axis: int, place: int, grad: Value, source: int) -> Value:
    """``total`` with one slice of ``grad`` added at ``place``."""
    size = total.type.shape[axis]
    one = Add()(_along(total, axis, place, 1), _along(grad, axis, source, 1))
    parts = [_along(total, axis, 0, place), one]
    parts.append(_along(total, axis, place + 1, size - (place + 1)))
    return Concat(axis)(*parts)
