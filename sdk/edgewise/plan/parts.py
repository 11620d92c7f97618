"""Concats and slices without copies, where the kernels around them can do so.

The parts of a concat are computed in their places of its result; what a slice keeps is
read where it lies.  Both take kernels that step over what is not theirs: a kernel that
cannot declines the call, and the copy stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from edgewise.ir.op import Op
from edgewise.kernels.catalog.base import Binding, Call
from edgewise.ops.shape import Concat, Slice
from edgewise.plan.flat import ABSENT, Flat
from edgewise.plan.room import Room
from edgewise.plan.seats import Part, Seats
from edgewise.types import TensorType, ValueType

Find: TypeAlias = Callable[[Call], Binding | None]
NO_WORK = Binding(())


def bind_kernel(
    flat: Flat,
    types: Sequence[ValueType],
    index: int,
    op: Op,
    find: Find,
    seats: Seats | None = None,
) -> Binding | None:
    """The kernels of a node, on values that lie where ``seats`` says."""
    if op.view:
        return None
    reads, writes = flat.reads[index], flat.writes[index]
    inputs = [None if n == ABSENT else types[n] for n in reads]
    outputs = [types[n] for n in writes]
    for type_ in (*inputs, *outputs):
        if type_ is not None and type_.is_object:
            return None  # kernels know flat memory only
    fixed = frozenset(slot for slot, n in enumerate(reads) if n in flat.fixed)
    call = Call(op, tuple(inputs), tuple(outputs), fixed=fixed)  # type: ignore[arg-type]  # tensors, as checked
    if seats is not None:
        apart = [None if n == ABSENT else seats.apart(n) for n in reads]
        call = call._replace(
            reads=tuple(apart) if any(apart) else (),
            writes=tuple(map(seats.apart, writes)) if seats.inside else (),
            placed=_placed(seats, op, reads, writes[0]),
        )
        if not any(call.writes):
            call = call._replace(writes=())
    return find(call)


def _placed(seats: Seats, op: Op, reads: Sequence[int], made: int) -> frozenset[int]:
    """The slots of a concat that lie in their places of its result."""
    if not isinstance(op, Concat):
        return frozenset()
    return frozenset(
        slot
        for slot, number in enumerate(reads)
        if seats.inside.get(seats.first(number))
        == _part_of(seats, op.axis, reads, slot, made)
    )


def _part_of(
    seats: Seats, axis: int, reads: Sequence[int], slot: int, made: int
) -> Part:
    """The part of a concat that input ``slot`` is."""
    rank = len(seats.dims(made))
    starts = [0] * rank
    starts[axis] = sum(seats.dims(number)[axis] for number in reads[:slot])
    return Part(reads[slot], made, tuple(starts), (1,) * rank)


class _Placement:
    """Moves values into others, one after the other.

    Attributes:
        seats: Where values lie.
        bindings: Kernels of every node, for where its values lie.
    """

    def __init__(
        self,
        flat: Flat,
        ops: Sequence[Op],
        types: Sequence[ValueType],
        bindings: list[Binding | None],
        find: Find,
        room: Room,
    ) -> None:
        self._flat, self._ops, self._types = flat, ops, types
        self._find, self._room = find, room
        self.seats, self.bindings = Seats(flat, ops, types), bindings
        self._given = frozenset((*flat.outputs, *flat.updates.values()))

    def run(self) -> None:
        """All concats, the last first: parts may hold parts; then all slices."""
        for index in reversed(range(len(self._ops))):
            op = self._ops[index]
            if isinstance(op, Concat) and self.bindings[index] is not None:
                self._concat(index, op)
        for index, op in enumerate(self._ops):
            if isinstance(op, Slice) and self.bindings[index] is not None:
                self._slice(index, op)

    def _concat(self, index: int, op: Concat) -> None:
        reads, made = self._flat.reads[index], self._flat.writes[index][0]
        for slot in range(len(reads)):
            part = _part_of(self.seats, op.axis, reads, slot, made)
            first = self.seats.first(part.guest)
            maker = self.seats.makers[first]
            if maker != ABSENT and not isinstance(self._ops[maker], Slice):
                self._move(first, maker, part, also=index)

    def _slice(self, index: int, op: Slice) -> None:
        made, source = self._flat.writes[index][0], self._flat.reads[index][0]
        if any(step < 1 for step in op.steps) or 0 in self.seats.dims(made):
            return
        starts = tuple(int(start) for start in op.starts)  # type: ignore[arg-type]  # bound
        if self._move(made, index, Part(made, source, starts, op.steps)):
            self.bindings[index] = NO_WORK

    def _move(self, first: int, maker: int, part: Part, also: int = ABSENT) -> bool:
        """Let the group of ``first`` lie where ``part`` says, if all agree."""
        seats = self.seats
        members = seats.members[first]
        if first in seats.inside or not self._given.isdisjoint(members):
            return False
        if 0 in seats.dims(part.guest):
            return False
        seats.inside[first] = part
        nodes = {index for number in members for index in seats.readers[number]}
        nodes.discard(also)
        if not isinstance(self._ops[maker], Slice):
            nodes.add(maker)
        fresh = self._bound(nodes, members)
        if also != ABSENT and fresh is not None:
            fresh[also] = self._bind(also)
            if fresh[also] is None:
                fresh = None
        root = seats.seat(part.host)
        if (
            fresh is None
            or root is None
            or not self._room.move(members, maker, root.root)
        ):
            del seats.inside[first]
            return False
        for index, binding in fresh.items():
            self.bindings[index] = binding
        return True

    def _bound(
        self, nodes: Collection[int], members: Sequence[int]
    ) -> dict[int, Binding | None] | None:
        """New bindings of the nodes around a group; ``None`` where one declines.

        A kernel that another would replace for the sake of strides is worth a copy.
        """
        if any(self.seats.seat(number) is None for number in members):
            return None
        if not any(map(self.seats.apart, members)):
            return {}
        fresh: dict[int, Binding | None] = {}
        for index in nodes:
            old, new = self.bindings[index], self._bind(index)
            if old is None or new is None or _symbols(old) != _symbols(new):
                return None
            fresh[index] = new
        return fresh

    def _bind(self, index: int) -> Binding | None:
        return bind_kernel(
            self._flat, self._types, index, self._ops[index], self._find, self.seats
        )


def _symbols(binding: Binding) -> list[str]:
    return [launch.symbol for launch in binding.launches]


def has_parts(ops: Sequence[Op]) -> bool:
    """Whether there is anything to place."""
    return any(isinstance(op, Concat | Slice) for op in ops)


def place(
    flat: Flat,
    ops: Sequence[Op],
    types: Sequence[ValueType],
    bindings: list[Binding | None],
    find: Find,
    room: Room,
) -> dict[int, tuple[int, int]]:
    """Move values into others; ``bindings`` become those for where they then lie.

    Returns:
        For every value that lies in another: whose memory that is, and bytes to it.
    """
    placement = _Placement(flat, ops, types, bindings, find, room)
    placement.run()
    seats, found = placement.seats, {}
    for first in seats.inside:
        for number in seats.members[first]:
            seat, type_ = seats.seat(number), types[number]
            if seat is not None and isinstance(type_, TensorType):
                found[number] = seat.root, seat.offset * type_.dtype.bits // 8
    return found
