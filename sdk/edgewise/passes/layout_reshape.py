"""A reshape behind a transpose, done before it: axes split and merge in groups."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.dims import Dim, Shape, floordiv
from edgewise.ir.graph import Inputs, Node, Value
from edgewise.ops.shape import Reshape
from edgewise.passes.permute import permutation, transposed

TO_FIRST = (0, 3, 1, 2)  # channels-last to ONNX's order


class _Group(NamedTuple):
    """Axes of a shape that become axes of another: equal products, as small as can be.

    Attributes:
        old: Axes before the reshape.
        new: Axes after it.
    """

    old: list[int]
    new: list[int]


def sink_reshape(node: Node, inputs: Inputs) -> Value | None:
    """``Reshape(Transpose(x))`` as ``Transpose(Reshape(x))``, or without a transpose.

    It can be done where every group of axes that the reshape merges or splits lies
    together, and in the same order, before the transpose.  Axes of size 1 lie anywhere.
    """
    axes, source = permutation(inputs[0]), inputs[0]
    if axes is None or source is None or source.node.inputs[0] is None:
        return None
    x = source.node.inputs[0]
    groups = _groups(source.type.shape, Value(node).type.shape)
    if groups is None:
        return None
    solid = [axis for axis in range(x.type.rank) if x.type.shape[axis] != 1]
    places = [
        [solid.index(axes[axis]) for axis in group.old if axes[axis] in solid]
        for group in groups
    ]
    order = sorted(range(len(groups)), key=lambda index: min(places[index], default=-1))
    moved = [axis for index in order for axis in groups[index].new]
    back = tuple(moved.index(axis) for axis in range(len(moved)))
    if not all(_together(place) for place in places):
        if back != TO_FIRST:
            return None
        # A shuffle of channels: they are shuffled where they lie, as the last axes.
        gathered = [axes[axis] for index in order for axis in groups[index].old]
        x = transposed(x, tuple(gathered), node.label)
    shape = Value(node).type.shape
    inner = Reshape(tuple(shape[axis] for axis in moved))(x, label=node.label)
    return transposed(inner, back, node.label)


def _together(place: list[int]) -> bool:
    return not place or place == list(range(place[0], place[0] + len(place)))


def _groups(old: Shape, new: Shape) -> list[_Group] | None:
    """The groups of a reshape; ``None`` where sizes do not tell them."""
    if 0 in old or 0 in new:
        return None
    groups: list[_Group] = []
    i = j = 0
    while i < len(old) and j < len(new):
        group = _Group([i], [j])
        left, right = old[i], new[j]
        i, j = i + 1, j + 1
        while left != right:
            if _divides(left, right) and i < len(old):
                group.old.append(i)
                left, i = left * old[i], i + 1
            elif _divides(right, left) and j < len(new):
                group.new.append(j)
                right, j = right * new[j], j + 1
            else:
                return None
        groups.append(group)
    return _with_ones(groups, old, new, i, j)


def _with_ones(
    groups: list[_Group], old: Shape, new: Shape, i: int, j: int
) -> list[_Group] | None:
    """The groups with what is left at the ends, which must be axes of size 1."""
    if any(size != 1 for size in (*old[i:], *new[j:])):
        return None
    if not groups:
        groups = [_Group([], [])]
    groups[-1].old.extend(range(i, len(old)))
    groups[-1].new.extend(range(j, len(new)))
    return groups


def _divides(small: Dim, large: Dim) -> bool:
    """Whether ``small`` has to grow to become ``large``."""
    if isinstance(small, int) and isinstance(large, int):
        return small < large
    return small != large and floordiv(large, small) * small == large
