"""Reductions, sums on the way, and searches along axes."""

from __future__ import annotations

from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.writer import At, channels_second
from edgewise.ops import order
from edgewise.ops import reduce as red

_KINDS = {
    red.ReduceSum: "ReduceSum",
    red.ReduceMean: "ReduceMean",
    red.ReduceMax: "ReduceMax",
    red.ReduceMin: "ReduceMin",
    red.ReduceProd: "ReduceProd",
    red.ReduceL1: "ReduceL1",
    red.ReduceL2: "ReduceL2",
    red.ReduceLogSum: "ReduceLogSum",
    red.ReduceLogSumExp: "ReduceLogSumExp",
    red.ReduceSumSquare: "ReduceSumSquare",
}


@writes(*_KINDS)
def reduction(at: At) -> Written:
    """Over some axes, in the order in which they are there."""
    kind, axes, kept = _KINDS[type(at.op)], at.op.axes, at.op.keepdims
    if not axes:
        return at.emit(kind, at.name(0), at.integers(), noop_with_empty_axes=1)
    keep = {"keepdims": int(kept)}
    if at.writer.is_image(at.x):
        places = channels_second(at.x.type.rank)
        moved = [places.index(axis) for axis in axes]
        rest = [axis for axis in places if axis not in axes]
        if kept:
            return Image(at.emit(kind, at.image(0), at.integers(*moved), **keep))
        if rest == sorted(rest):  # what is left lies as it does without images
            return at.emit(kind, at.image(0), at.integers(*moved), **keep)
    return at.emit(kind, at.name(0), at.integers(*axes), **keep)


@writes(order.Argmax, order.Argmin)
def place(at: At) -> Written:
    """Where the largest or smallest is."""
    op, kind = at.op, "ArgMax" if isinstance(at.op, order.Argmax) else "ArgMin"
    more = {"axis": op.axis, "keepdims": int(op.keepdims)}
    return at.emit(kind, at.name(0), select_last_index=int(op.last), **more)


@writes(order.Cumsum)
def cumsum(at: At) -> Written:
    """Sums of all elements up to each."""
    op, axis = at.op, at.writer.sizes.scalar(at.op.axis)
    more = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    return at.emit("CumSum", at.name(0), axis, **more)


@writes(order.TopK)
def top_k(at: At) -> Written:
    """The first so many in order."""
    count = at.writer.sizes.vector((at.op.k,))
    more = {"axis": at.op.axis, "largest": int(at.op.largest)}
    found: tuple[str, ...] = at.emit_all("TopK", 2, at.name(0), count, **more)
    return found
