"""Where values live: buffers, which views and in-place results share, and for how long.

Time is counted in nodes: a buffer lives from the node that first writes it to the last
that reads it, both included; what a caller gets lives to the end.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping

from edgewise.ir.graph import Constant, Variable
from edgewise.ir.op import Array, Op
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT, Flat
from edgewise.types import TensorType, ValueType


class Place(enum.IntEnum):
    """Whose memory a buffer is."""

    ARENA = 0  # the session's working memory
    INPUT = 1  # the caller's array; the key is its position
    OUTPUT = 2  # an array given back; the key is its position
    VARIABLE = 3  # the variable of that key
    CONSTANT = 4  # a constant of the graph; the key is its value number
    OBJECT = 5  # a Python object, in no flat memory; the key is its value number
    PREPARED = 6  # made from a variable before runs; the key is its number in the plan


class Base(NamedTuple):
    """A piece of memory with an address of its own; offsets count from there."""

    place: Place
    key: int | str


ARENA = Base(Place.ARENA, 0)


class Buffer:
    """Bytes that one or more values share.

    Attributes:
        base: The memory it lies in.
        size: Bytes it takes.
        first: Node that first writes it; -1 for leaves.
        last: Last node that needs it.
    """

    __slots__ = ("base", "first", "last", "size")

    def __init__(self, base: Base, size: int, first: int, last: int) -> None:
        self.base, self.size, self.first, self.last = base, size, first, last


class Storage:
    """Buffers of a graph, and the buffer of each value.

    Attributes:
        buffers: All of them, those of leaves included.
        of: Buffer number of every value.
        constants: Arrays of the constants, by value number.
        roots: The values whose memory others lie in, by those.
    """

    __slots__ = ("buffers", "constants", "last", "of", "roots", "sizes", "types")

    def __init__(
        self,
        flat: Flat,
        types: list[ValueType],
        sizes: list[int],
        roots: Mapping[int, int],
    ) -> None:
        self.types, self.sizes, self.roots = types, sizes, roots
        self.last = _last_reads(flat)
        self.buffers: list[Buffer] = []
        self.of = [ABSENT] * len(sizes)
        self.constants: dict[int, Array] = {}
        positions = {number: position for position, number in enumerate(flat.inputs)}
        for number, node in flat.leaves:
            self.new(number, self._leaf(number, node.op, positions), -1)

    def _leaf(self, number: int, op: Op, positions: dict[int, int]) -> Base:
        if isinstance(op, Constant):
            self.constants[number] = op.array
            return Base(Place.CONSTANT, number)
        if isinstance(op, Variable):
            return Base(Place.VARIABLE, op.key)
        return Base(Place.INPUT, positions[number])

    def new(self, number: int, base: Base, first: int) -> None:
        """Give a value memory of its own."""
        self.of[number] = len(self.buffers)
        last = max(first, self.last[number])
        self.buffers.append(Buffer(base, self.sizes[number], first, last))

    def made(self, index: int, number: int) -> None:
        """Give a value that node ``index`` makes memory of its own."""
        is_object = self.types[number].is_object
        base = Base(Place.OBJECT, number) if is_object else ARENA
        self.new(number, base, index)

    def result(self, index: int, op: Op, reads: tuple[int, ...], number: int) -> None:
        """Give the first output of a node its memory: shared, taken over, or new."""
        if number in self.roots:
            self._inside(index, number, self.roots[number])
            return
        if self.of[number] != ABSENT:  # its parts are there already
            return
        source = reads[0] if op.view else self._dying(index, op, reads, number)
        if source == ABSENT:
            self.made(index, number)
            return
        self.of[number] = self.of[source]
        buffer = self.buffers[self.of[source]]
        buffer.last = max(buffer.last, self.last[number])

    def further(self, index: int, number: int) -> None:
        """Give another output of a node its memory."""
        if number in self.roots:
            self._inside(index, number, self.roots[number])
        else:
            self.made(index, number)

    def _inside(self, index: int, number: int, root: int) -> None:
        """Let a value lie in the memory of ``root``, which may not be made yet."""
        if self.of[root] == ABSENT:
            self.made(index, root)
        self.of[number] = self.of[root]
        buffer = self.buffers[self.of[root]]
        buffer.last = max(buffer.last, self.last[number])

    def _dying(self, index: int, op: Op, reads: tuple[int, ...], number: int) -> int:
        """A value that nobody reads after this node and ``number`` may overwrite."""
        for slot in op.in_place:
            source = reads[slot] if slot < len(reads) else ABSENT
            if source == ABSENT or not self._alike(source, number):
                continue
            if source in self.roots:
                continue
            place = self.of[source]
            buffer = self.buffers[place]
            if buffer.base is not ARENA or buffer.last > index:
                continue
            # Another slot that reads the same bytes must be as safe to overwrite.
            if all(
                other in op.in_place
                and read not in self.roots
                and self._alike(read, number)
                for other, read in enumerate(reads)
                if read != ABSENT and self.of[read] == place
            ):
                return source
        return ABSENT

    def _alike(self, a: int, b: int) -> bool:
        one, other = self.types[a], self.types[b]
        if not isinstance(one, TensorType) or not isinstance(other, TensorType):
            return False
        return one.dtype is other.dtype and self.sizes[a] == self.sizes[b]

    def claim(self, number: int, base: Base) -> bool:
        """Move a value's buffer out of the arena to ``base``; whether that could be."""
        buffer = self.buffers[self.of[number]]
        if buffer.base is not ARENA:
            return False
        buffer.base = base
        return True


def _last_reads(flat: Flat) -> list[int]:
    last = [-1] * len(flat.types)
    for index, reads in enumerate(flat.reads):
        for number in reads:
            if number != ABSENT:
                last[number] = index
    for number in (*flat.outputs, *flat.updates.values()):
        last[number] = len(flat.nodes)
    return last


def lay_out(
    flat: Flat,
    ops: list[Op],
    types: list[ValueType],
    sizes: list[int],
    direct: Collection[str] = (),
    roots: Mapping[int, int] | None = None,
    settled: int = 0,
) -> Storage:
    """Buffers for every value; outputs lie where they are given back, if they can.

    Args:
        flat: The graph.
        ops: Its ops at these sizes.
        types: Types of its values.
        sizes: Bytes of its values.
        direct: Variables whose new value may be written in their own memory while the
            graph runs; one that the graph also reads is copied at the end all the same,
            but for what ops say they may overwrite.
        roots: Values that lie in the memory of others, and whose that is.
        settled: The node from which on kernels do all.
    """
    storage = Storage(flat, types, sizes, roots or {})
    for index, op in enumerate(ops):
        first, *others = flat.writes[index]
        storage.result(index, op, flat.reads[index], first)
        for number in others:
            storage.further(index, number)
    for position, number in enumerate(flat.outputs):
        storage.claim(number, Base(Place.OUTPUT, position))
    read = {node.op.key for _, node in flat.leaves if isinstance(node.op, Variable)}
    carried = _carried(flat, ops, storage, settled)
    for key, number in flat.updates.items():
        if (key in direct and key not in read) or number in carried:
            storage.claim(number, Base(Place.VARIABLE, key))
    return storage


def _carried(flat: Flat, ops: list[Op], storage: Storage, settled: int) -> set[int]:
    """New values of variables that may be written over the old ones.

    Their nodes are the last to read those, and nothing that comes behind them is done
    in Python, where an interrupt would leave half of the variables new.
    """
    keys = {n: node.op.key for n, node in flat.leaves if isinstance(node.op, Variable)}
    last: dict[str, int] = {}
    for number, key in keys.items():
        read = storage.buffers[storage.of[number]].last
        last[key] = max(last.get(key, ABSENT), read)
    found = set()
    for index in range(settled, len(ops)):
        pairs = zip(ops[index].overwrites, flat.writes[index], strict=False)
        for slot, number in pairs:
            key = keys.get(flat.reads[index][slot], "")
            if flat.updates.get(key) == number and last[key] == index:
                found.add(number)
    return found
