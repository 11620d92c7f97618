"""One way to say a thing: what computes nothing goes, chains become one op."""

from __future__ import annotations

from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ir.pattern import a
from edgewise.ops.activation import Relu
from edgewise.ops.binary import Add, Div, Mul, Pow, Sub
from edgewise.ops.choose import Cast, Clip
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Concat, Expand, Reshape, Slice, Tile, Transpose
from edgewise.ops.unary import Neg, Not
from edgewise.passes.rewrite import rule


def _if_same(x: Value, root: Value) -> Value | None:
    """``x`` unless the root also broadcast it."""
    return x if x.type == root.type else None


@rule(
    a(Mul, "x", 1.0, name="root"),
    a(Div, "x", 1.0, name="root"),
    a(Add, "x", 0.0, name="root"),
    a(Sub, "x", 0.0, name="root"),
    a(Pow, "x", 1.0, name="root"),
)
def neutral(x: Value, root: Value) -> Value | None:
    """An operand that changes nothing."""
    return _if_same(x, root)


@rule(
    a((Cast, Expand, Reshape, Tile), "x", name="root"),
    a(Slice, "x", name="root"),
    a(Pad, "x", name="root"),
    a(Concat, "x", name="root"),
)
def unchanged(x: Value, root: Value) -> Value | None:
    """An op that gives the type it takes, and moves nothing."""
    op = root.op
    if isinstance(op, Slice) and any(step != 1 for step in op.steps):
        return None
    if isinstance(op, Pad) and any(pad != 0 for pad in op.pads):
        return None
    return _if_same(x, root)


@rule(a(Transpose, "x", name="root"))
def still(x: Value, root: Value) -> Value | None:
    """A transpose that leaves every axis where it is."""
    return x if _axes(root) == tuple(range(x.type.rank)) else None


@rule(a(Transpose, a(Transpose, "x", name="inner"), name="root"))
def transposed_twice(x: Value, inner: Value, root: Value) -> Value:
    """Two transposes are one."""
    first = _axes(inner)
    return Transpose(tuple(first[axis] for axis in _axes(root)))(x)


def _axes(value: Value) -> tuple[int, ...]:
    op = value.op
    return op.axes if isinstance(op, Transpose) else ()


@rule(a(Reshape, a(Reshape, "x"), name="root"))
def reshaped_twice(x: Value, root: Value) -> Value:
    """Only the last shape counts."""
    return Reshape(root.type.shape)(x)


@rule(a(Neg, a(Neg, "x")), a(Not, a(Not, "x")))
def inverted_twice(x: Value) -> Value:
    """Two inversions are none."""
    return x


@rule(a(Clip, a(Clip, "x", name="inner"), name="outer"))
def clipped_twice(x: Value, inner: Value, outer: Value) -> Value | None:
    """Two ranges are one: the outer applies last, so it wins where they are apart."""
    first, second = inner.op, outer.op
    if not isinstance(first, Clip) or not isinstance(second, Clip):
        return None
    low = min(max(first.low, second.low), second.high)
    high = max(min(first.high, second.high), second.low)
    return Clip(low, high)(x)


@rule(a(Relu, a(Clip, "x", name="inner")))
def relu_of_clip(x: Value, inner: Value) -> Value | None:
    """A range above zero."""
    op = inner.op
    if not isinstance(op, Clip):
        return None
    return Clip(max(op.low, 0.0), max(op.high, 0.0))(x)


@rule(a(Clip, a(Relu, "x"), name="outer"))
def clip_of_relu(x: Value, outer: Value) -> Value | None:
    """A range above zero, where the clip does not lift it."""
    op = outer.op
    if not isinstance(op, Clip) or op.high < 0:
        return None
    return Clip(max(op.low, 0.0), op.high)(x)


@rule(a(Slice, a(Slice, "x", name="inner"), name="outer"))
def sliced_twice(x: Value, inner: Value, outer: Value) -> Value | None:
    """A range of a range."""
    first, second = inner.op, outer.op
    if not isinstance(first, Slice) or not isinstance(second, Slice):
        return None
    starts: list[Dim] = [
        start + more * step
        for start, more, step in zip(
            first.starts, second.starts, first.steps, strict=True
        )
    ]
    steps = tuple(s * t for s, t in zip(first.steps, second.steps, strict=True))
    return Slice(tuple(starts), second.sizes, steps)(x)


@rule(a(Concat, ..., name="root"))
def rejoined(root: Value) -> Value | None:
    """Neighbouring slices of one value, side by side again, are one slice."""
    op = root.op
    if not isinstance(op, Concat):
        return None
    joined: list[Value] = []
    for value in root.node.inputs:
        if value is None:
            return None
        both = _together(joined[-1], value, op.axis) if joined else None
        if both is None:
            joined.append(value)
        else:
            joined[-1] = both
    return op(*joined) if len(joined) < len(root.node.inputs) else None


def _together(left: Value, right: Value, axis: int) -> Value | None:
    """Two slices of one value as one, where the second goes on behind the first."""
    a, b, source = left.op, right.op, left.node.inputs[:1]
    if not isinstance(a, Slice) or not isinstance(b, Slice):
        return None
    if source != right.node.inputs[:1] or source[0] is None:
        return None
    starts, sizes = list(a.starts), list(a.sizes)
    starts[axis], sizes[axis] = a.starts[axis] + a.sizes[axis], b.sizes[axis]
    if (tuple(starts), tuple(sizes)) != (b.starts, b.sizes):
        return None
    if {*a.steps, *b.steps} != {1}:
        return None
    sizes[axis] += a.sizes[axis]
    return Slice(a.starts, tuple(sizes), a.steps)(source[0])


RULES = (
    rejoined,
    neutral,
    unchanged,
    still,
    transposed_twice,
    reshaped_twice,
    inverted_twice,
    clipped_twice,
    relu_of_clip,
    clip_of_relu,
    sliced_twice,
)
