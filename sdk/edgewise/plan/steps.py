"""Steps as flat words: what the native executor reads, with addresses left open.

A word that is an address holds the offset in its base; adding the address of the base
makes it whole.  So an arena that moves, or another array from the caller, costs one
addition a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.kernels.catalog.base import (
    Binding,
    In,
    Out,
    Prepared,
    Scratch,
    Temp,
    Word,
)
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT
from edgewise.plan.storage import ARENA, Base, Place


class Step(NamedTuple):
    """One launch: a native function, where its words begin, its tasks, its node."""

    symbol: str
    start: int
    tasks: int
    node: int


class Steps(NamedTuple):
    """All launches of a plan.

    Attributes:
        rows: The launches, in order.
        words: Argument words of all of them, one after the other.
        addresses: For each base, the positions of the words that count from it.
    """

    rows: tuple[Step, ...]
    words: list[int]
    addresses: dict[Base, list[int]]


class Writer:
    """Collects the launches of one node after the other.

    Args:
        locations: Base and offset of every value.
        prepared: Of every node, numbers of the memory that it has prepared.
    """

    def __init__(
        self,
        locations: Sequence[tuple[Base, int]],
        prepared: Sequence[Sequence[int]],
    ) -> None:
        self._locations, self._prepared = locations, prepared
        self._rows: list[Step] = []
        self._words: list[int] = []
        self._addresses: dict[Base, list[int]] = {}

    def add(
        self,
        node: int,
        binding: Binding,
        reads: Sequence[int],
        writes: Sequence[int],
        temps: Sequence[int],
    ) -> None:
        """Append the launches of ``node``.

        Args:
            node: Node number.
            binding: Its launches.
            reads: Values it reads.
            writes: Values it makes.
            temps: Arena offsets of its temporaries; of its scratch area last.
        """
        prepared = self._prepared[node]
        for symbol, words, tasks in binding.launches:
            self._rows.append(Step(symbol, len(self._words), tasks, node))
            for word in words:
                if type(word) is int:
                    self._words.append(word)
                else:
                    self._address(word, reads, writes, temps, prepared)

    def _address(
        self,
        word: Word,
        reads: Sequence[int],
        writes: Sequence[int],
        temps: Sequence[int],
        prepared: Sequence[int],
    ) -> None:
        match word:
            case In(slot, offset):
                number = reads[slot] if slot < len(reads) else ABSENT
                if number == ABSENT:
                    self._words.append(0)
                    return
                base, start = self._locations[number]
            case Out(slot, offset):
                base, start = self._locations[writes[slot]]
            case Temp(slot, offset):
                base, start = ARENA, temps[slot]
            case Scratch():
                base, start, offset = ARENA, temps[-1], 0
            case Prepared(slot):
                base, start, offset = Base(Place.PREPARED, prepared[slot]), 0, 0
            case _:  # a bool or a numpy integer
                self._words.append(int(word))
                return
        self._addresses.setdefault(base, []).append(len(self._words))
        self._words.append(start + offset)

    def finish(self) -> Steps:
        """All that was added."""
        return Steps(tuple(self._rows), self._words, self._addresses)
