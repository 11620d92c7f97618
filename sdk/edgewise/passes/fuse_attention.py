"""Attention reads q, k and v where they lie: no transposes, no slices before it."""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ir.pattern import a, scalar
from edgewise.ops.attention import Attention
from edgewise.ops.index import Gather
from edgewise.ops.shape import Reshape, Slice, Transpose
from edgewise.passes.rewrite import rule

Place = tuple[Value, str]
MOST_PARTS = 9


@rule(a(Attention, "q", "k", "v", "mask", name="root"))
def attention_in_place(
    q: Value, k: Value, v: Value, mask: Value | None, root: Value
) -> Value | None:
    """An operand that only other axes, or a part of a larger one, make."""
    op = root.op
    if not isinstance(op, Attention):
        return None
    *forms, result = op.forms()
    before = list(zip((q, k, v), forms, strict=True))
    places = [_earlier(*place) for place in before]
    if not any(places):
        return None
    now = [new or old for new, old in zip(places, before, strict=True)]
    axes = f"{','.join(form for _, form in now)}->{result}"
    return op.replace(axes=axes)(*(value for value, _ in now), mask)


@rule(
    a(Transpose, a(Attention, "q", "k", "v", "mask", name="attention"), name="root"),
)
def attention_transposed(
    q: Value, k: Value, v: Value, mask: Value | None, attention: Value, root: Value
) -> Value | None:
    """A result that is read on other axes."""
    op, turn = attention.op, root.op
    if not isinstance(op, Attention) or not isinstance(turn, Transpose):
        return None
    left, _, result = op.axes.partition("->")
    moved = "".join(result[axis] for axis in turn.axes)
    if moved[-1] != "e":
        return None
    return op.replace(axes=f"{left}->{moved}")(q, k, v, mask)


def _earlier(value: Value, form: str) -> Place | None:
    """What ``value`` is made of without work, and its axes."""
    x = value.node.inputs[0] if value.node.inputs else None
    if x is None:
        return None
    if isinstance(value.op, Transpose):
        return _before_transpose(x, form, value.op.axes)
    if any(map(str.isdigit, form)):
        return None
    if isinstance(value.op, Gather):
        return _before_gather(value, x, form, value.op.axis)
    if isinstance(value.op, Reshape) and isinstance(x.op, Slice):
        return _one_of_axis(value, x, form) or _part(value, x, form)
    return None


def _before_transpose(x: Value, form: str, axes: tuple[int, ...]) -> Place | None:
    moved = "".join(form[axes.index(axis)] for axis in range(len(axes)))
    # Keys are packed anyway; other operands are read and written in whole vectors.
    return (
        (x, moved) if moved[-1] == form[-1] or ("k" in form and "d" in form) else None
    )


def _before_gather(value: Value, x: Value, form: str, axis: int) -> Place | None:
    """One index of an axis that is not the last."""
    index = scalar(value.node.inputs[1])
    if index is None or x.type.rank != value.type.rank + 1 or axis == value.type.rank:
        return None
    size = x.type.shape[axis]
    if index < 0 and isinstance(size, int):
        index += size
    if not 0 <= index <= MOST_PARTS:
        return None
    return x, f"{form[:axis]}{int(index)}{form[axis:]}"


def _cut(part: Value) -> tuple[Value, int, int] | None:
    """What a slice is a part of, the one axis it makes shorter, its start there."""
    op, source = part.op, part.node.inputs[0]
    if not isinstance(op, Slice) or source is None or {*op.steps} - {1}:
        return None
    shorter = [
        axis
        for axis, size in enumerate(source.type.shape)
        if op.sizes[axis] != size or op.starts[axis] != 0
    ]
    if len(shorter) != 1:
        return None
    start = op.starts[shorter[0]]
    return (source, shorter[0], start) if isinstance(start, int) else None


def _one_of_axis(value: Value, part: Value, form: str) -> Place | None:
    """A slice of one index whose axis is then dropped."""
    cut, shape = _cut(part), part.type.shape
    if cut is None:
        return None
    source, axis, start = cut
    if axis == len(shape) - 1 or start > MOST_PARTS:
        return None
    if shape[axis] != 1 or (*shape[:axis], *shape[axis + 1 :]) != value.type.shape:
        return None
    return source, f"{form[:axis]}{start}{form[axis:]}"


def _part(value: Value, part: Value, form: str) -> Place | None:
    """One of several equal parts of the last axis, which is then split into heads."""
    cut, shape = _cut(part), value.type.shape
    if cut is None or shape[:-2] != part.type.shape[:-1]:
        return None
    source, axis, start = cut
    whole, size = source.type.shape[-1], part.type.shape[-1]
    if axis != part.type.rank - 1 or not size:
        return None
    if not isinstance(whole, int) or not isinstance(size, int):
        return None
    place = start // size
    if whole % size or start % size or place > MOST_PARTS:
        return None
    apart = Reshape((*shape[:-2], whole // size, *shape[-2:]))(source)
    return apart, f"{form[:-2]}{place}{form[-2:]}"


RULES = (attention_in_place, attention_transposed)
