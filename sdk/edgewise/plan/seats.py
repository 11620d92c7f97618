"""Where the elements of values lie that share the memory of others.

A view and what it views are one group: they have the same elements, in one order.  A
group lies in memory of its own, or every element of it is one of another value, its
host: a part of a concat, what a slice keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.ir.op import Op
from edgewise.kernels.catalog.strides import Ints, collapse, contiguous
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT, Flat
from edgewise.types import TensorType, ValueType


class Part(NamedTuple):
    """Element ``j`` of ``guest`` is ``start + j * step`` of ``host``, by axis."""

    guest: int
    host: int
    starts: Ints
    steps: Ints


class Seat(NamedTuple):
    """Memory of a value: of ``root``, from element ``offset`` on, with strides."""

    root: int
    offset: int
    steps: Ints


class Seats:
    """Seats of all values of a graph.

    Attributes:
        makers: The node that makes each value; ``ABSENT`` for leaves.
        readers: The nodes that read each value, views left out.
        members: The values of each group, by its first.
        inside: The groups that lie in other values.
    """

    def __init__(
        self, flat: Flat, ops: Sequence[Op], types: Sequence[ValueType]
    ) -> None:
        self._types = types
        self.makers = [ABSENT] * len(types)
        self.readers: list[list[int]] = [[] for _ in types]
        self._first = list(range(len(types)))
        self.members: dict[int, list[int]] = {}
        self.inside: dict[int, Part] = {}
        for index, writes in enumerate(flat.writes):
            for number in writes:
                self.makers[number] = index
            if ops[index].view:
                self._first[writes[0]] = self._first[flat.reads[index][0]]
                continue
            for number in flat.reads[index]:
                if number != ABSENT:
                    self.readers[number].append(index)
        for number, first in enumerate(self._first):
            self.members.setdefault(first, []).append(number)

    def first(self, number: int) -> int:
        """The value of its group that is no view."""
        return self._first[number]

    def dims(self, number: int) -> Ints:
        """Sizes of a tensor."""
        type_ = self._types[number]
        return type_.dims if isinstance(type_, TensorType) else ()

    def seat(self, number: int) -> Seat | None:
        """Where a value lies; ``None`` where strides cannot say it."""
        dims = self.dims(number)
        part = self.inside.get(self._first[number])
        if part is None:
            return Seat(self._first[number], 0, contiguous(dims))
        host = self.seat(part.host)
        if host is None:
            return None
        moved = sum(a * b for a, b in zip(part.starts, host.steps, strict=True))
        steps: Ints | None = tuple(
            a * b for a, b in zip(part.steps, host.steps, strict=True)
        )
        if number != part.guest and steps is not None:
            steps = regrouped(self.dims(part.guest), steps, dims)
        if steps is None:
            return None
        return Seat(host.root, host.offset + moved, steps)

    def apart(self, number: int) -> Ints | None:
        """Strides of a value that does not lie in one piece."""
        seat, dims = self.seat(number), self.dims(number)
        if seat is None or 0 in dims:
            return None
        pairs = zip(dims, seat.steps, contiguous(dims), strict=True)
        whole = all(size == 1 or step == own for size, step, own in pairs)
        return None if whole else seat.steps


def regrouped(dims: Ints, steps: Ints, target: Ints) -> Ints | None:
    """Strides of the same elements under other sizes; ``None`` where none do."""
    if 0 in dims:
        return contiguous(target)
    sizes, (merged,) = collapse(dims, steps)
    pieces = list(zip(sizes, merged, strict=True))
    rest, step = pieces.pop()
    result = []
    for size in reversed(target):
        if rest == 1 and size > 1:
            rest, step = pieces.pop()
        if rest % size:
            return None
        result.append(step)
        step, rest = step * size, rest // size
    return tuple(reversed(result))
