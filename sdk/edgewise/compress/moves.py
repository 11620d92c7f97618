"""What moves numbers, and where their channels go with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from edgewise.compress.ties import Labels, Ties, none_of
from edgewise.ir.graph import Node, Value
from edgewise.ir.op import Op
from edgewise.ops.pad import Pad
from edgewise.ops.reduce import Reduction
from edgewise.ops.shape import Concat, Reshape, Slice, Transpose

Inputs: TypeAlias = "Sequence[Labels]"


def _transposed(ties: Ties, inputs: Inputs, node: Node, op: Any) -> Labels:
    del ties, node
    found = inputs[0]
    return tuple(found[axis] for axis in op.axes)


def _padded(ties: Ties, inputs: Inputs, node: Node, op: Any) -> Labels:
    found, rank = inputs[0], Value(node).type.rank
    moved = [op.pads[j] != 0 or op.pads[rank + j] != 0 for j in range(rank)]
    ties.pin([c for c, m in zip(found, moved, strict=True) if m])
    pairs = zip(found, moved, strict=True)
    return tuple(None if m else c for c, m in pairs)


def _reduced(ties: Ties, inputs: Inputs, node: Node, op: Any) -> Labels:
    del node
    found = inputs[0]
    ties.pin([found[axis] for axis in op.axes])
    kept = [None if j in op.axes else c for j, c in enumerate(found)]
    if op.keepdims:
        return tuple(kept)
    return tuple(c for j, c in enumerate(kept) if j not in op.axes)


def _sliced(ties: Ties, inputs: Inputs, node: Node, op: Any) -> Labels:
    x = node.inputs[0]
    assert x is not None  # noqa: S101 - inferred
    found, shape = inputs[0], x.type.shape
    whole = [
        (start, size, step) == (0, full, 1)
        for start, size, step, full in zip(
            op.starts, op.sizes, op.steps, shape, strict=True
        )
    ]
    ties.pin([c for c, kept in zip(found, whole, strict=True) if not kept])
    return tuple(c if kept else None for c, kept in zip(found, whole, strict=True))


def _joined(ties: Ties, inputs: Inputs, node: Node, op: Any) -> Labels:
    values = [value for value in node.inputs if value is not None]
    each = [
        (labels, value.type.shape) for labels, value in zip(inputs, values, strict=True)
    ]
    result = list(each[0][0])
    for labels, _ in each[1:]:
        for axis in range(len(result)):
            if axis != op.axis:
                ties.tie(result[axis], labels[axis])
    parts = [(labels[op.axis], shape[op.axis]) for labels, shape in each]
    if all(channels is None for channels, _ in parts):
        return tuple(result)
    if not all(isinstance(size, int) for _, size in parts):
        ties.pin([channels for channels, _ in parts])
        return none_of(Value(node))
    rows = [ties.fresh(int(str(size))) if c is None else c for c, size in parts]
    ties.pin([row for row, (c, _) in zip(rows, parts, strict=True) if c is None])
    result[op.axis] = np.concatenate(rows)
    return tuple(result)


def _reshaped(ties: Ties, inputs: Inputs, node: Node, op: Any) -> Labels:
    """Axes that become one, or move past axes of one; others are pinned."""
    x = node.inputs[0]
    assert x is not None  # noqa: S101 - inferred
    found, result = inputs[0], list(none_of(Value(node)))
    for old, new in _groups(x.type.shape, op.shape):
        labelled = [j for j in old if found[j] is not None]
        target = [j for j in new if op.shape[j] != 1]
        whole = [size for j in old if isinstance(size := x.type.shape[j], int)]
        if len(labelled) == len(target) == 1 and len(whole) == len(old):
            (axis,) = labelled
            lined = [-1 if j == axis else 1 for j in old]
            channels = np.asarray(found[axis]).reshape(lined)
            result[target[0]] = np.broadcast_to(channels, whole).reshape(-1)
        else:
            ties.pin([found[j] for j in old])
    return tuple(result)


def _groups(old: tuple[Any, ...], new: tuple[Any, ...]) -> list[tuple[range, range]]:
    """Runs of axes that hold the same elements before and after."""
    found = []
    i = j = 0
    while i < len(old) or j < len(new):
        start, begin = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while not _equal(old[start:i], new[begin:j]):
            left, right = _size(old[start:i]), _size(new[begin:j])
            if i < len(old) and (left < right or j == len(new)):
                i += 1
            elif j < len(new):
                j += 1
            else:
                break
        found.append((range(start, i), range(begin, j)))
    return found


def _size(sizes: tuple[Any, ...]) -> int:
    return math.prod(size for size in sizes if isinstance(size, int))


def _equal(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    open_ = [[s for s in sizes if not isinstance(s, int)] for sizes in (old, new)]
    return open_[0] == open_[1] and _size(old) == _size(new)


MOVES: dict[type[Op], Callable[[Ties, Inputs, Node, Any], Labels]] = {
    Transpose: _transposed,
    Pad: _padded,
    Reduction: _reduced,
    Slice: _sliced,
    Concat: _joined,
    Reshape: _reshaped,
}
