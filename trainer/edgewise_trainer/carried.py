"""What the attributes of an op become where its inputs have other sizes.

Sizes that were numbers when a file was made lie in attributes.  They are carried over
where they can only mean one thing; all else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from edgewise.dims import Dim, Shape, bind, product, symbols
from edgewise.ir.op import Op
from edgewise.ops import (
    Expand,
    Gather,
    GatherElements,
    GatherNd,
    Reshape,
    Resize,
    ScatterElements,
    ScatterNd,
    Slice,
)
from edgewise.types import TensorType, ValueType

Kinds: TypeAlias = "tuple[ValueType | None, ...]"
Numbers: TypeAlias = Mapping[str, int]  # symbols that were numbers, and which
# Ops whose sizes count from the ends of an axis, or count no elements of it.
_FREE = {"attention", "pad", "tile"}


def carried(op: Op, before: Kinds, after: Kinds, numbers: Numbers) -> Op:
    """The op for inputs of other types.

    Args:
        op: As it was made.
        before: Types of its inputs then.
        after: Types of its inputs now.
        numbers: Symbols among their sizes that were numbers, those of batches.

    Raises:
        ShapeError: Its attributes might mean several things there.
    """
    if before == after:
        return op
    old, new = before[0], after[0]
    carry = _CARRY.get(type(op))
    if carry and isinstance(old, TensorType) and isinstance(new, TensorType):
        made = carry(op, old.shape, new.shape, numbers)
    else:
        counts = any("Dim" in str(field.kind) for field in op.fields)
        fixed = (counts and op.name not in _FREE) or op.bodies()
        made = None if fixed else op
    if made is None:
        want = ", ".join(map(str, before))
        raise op.refuse(after, f"({want}), for which the model was made")
    return made


def _reshape(op: Any, before: Shape, after: Shape, numbers: Numbers) -> Op | None:
    """Runs of axes that hold the same elements are carried over one by one.

    One that begins with the batch grows along it; one that becomes a single axis (axes
    of size 1 aside) takes what there is now.
    """
    sizes: list[Dim] = []
    for old, made in _runs(before, op.shape):
        kept, now = op.shape[made], product(after[old])
        large = [k for k, dim in enumerate(kept) if dim != 1] or [0]
        leads = made.start == 0 and not numbers.keys().isdisjoint(symbols(now))
        if before[old] == after[old]:
            sizes += kept
        elif leads and bind(now, numbers) == product(before[old]):
            sizes += [now // product(kept[1:]), *kept[1:]]
        elif _hides(before[old], after[old]):
            return None
        elif len(large) == 1 and (large == [0] or not leads):
            sizes += [now if k == large[0] else 1 for k in range(len(kept))]
        else:
            return None
    return Reshape(tuple(sizes))


def _hides(before: Shape, after: Shape) -> bool:
    """Whether an axis of size 1, which may have gone anywhere, is another now."""
    pairs = zip(before, after, strict=True)
    return len(before) > 1 and any(a == 1 and b != 1 for a, b in pairs)


def _runs(before: Shape, after: Shape) -> list[tuple[slice, slice]]:
    """The shortest runs of axes on both sides that hold equally many elements."""
    runs: list[tuple[slice, slice]] = []
    first = second = 0
    while first < len(before) and second < len(after):
        i, j = first + 1, second + 1
        while product(before[first:i]) != product(after[second:j]):
            left, right = _size(before[first:i]), _size(after[second:j])
            if left < right and i < len(before):
                i += 1
            elif j < len(after):
                j += 1
            else:
                i, j = len(before), len(after)
                break
        runs.append((slice(first, i), slice(second, j)))
        first, second = i, j
    last = runs.pop() if runs else (slice(0, 0), slice(0, 0))
    ends = (slice(last[0].start, len(before)), slice(last[1].start, len(after)))
    return [*runs, ends]  # axes of one element may be left over


def _size(shape: Shape) -> int:
    """About how many elements: symbols count as large."""
    whole = product(shape)
    found = bind(whole, dict.fromkeys(symbols(whole), 10_007))
    return found if isinstance(found, int) else 0


def _slice(op: Any, before: Shape, after: Shape, _: Numbers) -> Op | None:
    """Whole axes stay whole; parts of an axis whose size differs might be any."""
    sizes = list(op.sizes)
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        if (op.starts[axis], op.sizes[axis], op.steps[axis]) != (0, old, 1):
            return None
        sizes[axis] = new
    return Slice(op.starts, tuple(sizes), op.steps)


def _expand(op: Any, before: Shape, after: Shape, _: Numbers) -> Op:
    """Axes that were not spread follow."""
    sizes = list(op.shape)
    for back in range(1, min(len(before), len(sizes)) + 1):
        if before[-back] == sizes[-back]:
            sizes[-back] = after[-back]
    return Expand(tuple(sizes))


def _resize(op: Any, before: Shape, after: Shape, _: Numbers) -> Op | None:
    """As many times larger as it was."""
    sizes: list[Dim] = []
    for old, new, size in zip(before, after, op.sizes, strict=True):
        if old in (new, size):
            sizes.append(size if old == new else new)
        elif all(isinstance(dim, int) for dim in (old, new, size)):
            if size * new % old:
                return None
            sizes.append(size * new // old)
        else:
            return None
    return op.replace(sizes=tuple(sizes))  # type: ignore[no-any-return]


def _gather(op: Any, before: Shape, after: Shape, _: Numbers) -> Op | None:
    """Places were counted along the axis that there was."""
    return op if before[op.axis] == after[op.axis] else None


def _counted(_op: Any, _before: Shape, _after: Shape, _: Numbers) -> Op | None:
    return None


_CARRY: dict[type[Op], Callable[[Any, Shape, Shape, Numbers], Op | None]] = {
    Reshape: _reshape,
    Slice: _slice,
    Expand: _expand,
    Resize: _resize,
    Gather: _gather,
    **dict.fromkeys((GatherElements, GatherNd, ScatterElements, ScatterNd), _counted),
}
