"""Whether sharing memory makes the fullest moment of a run any fuller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgewise.kernels.catalog.base import Binding
from edgewise.plan.arena import Block, live_bytes
from edgewise.plan.storage import ARENA, Storage


class Room:
    """Bytes of the arena that live at each node, while values move into others.

    Args:
        storage: Buffers as they are when no value lies in another.
        bindings: Kernels, which have temporaries.
    """

    def __init__(self, storage: Storage, bindings: Sequence[Binding | None]) -> None:
        self._of, self._last = storage.of, storage.last
        self._spans = [
            (buffer.size if buffer.base is ARENA else 0, buffer.first, buffer.last)
            for buffer in storage.buffers
        ]
        blocks = [Block(*span) for span in self._spans if span[0]]
        self._live = live_bytes(blocks)
        self._live += [0] * (len(bindings) + 2 - len(self._live))
        for index, binding in enumerate(bindings):
            if binding:
                self._live[index] += sum(binding.temps) + binding.scratch
        self._most = max(self._live)

    def move(self, members: Iterable[int], maker: int, host: int) -> bool:
        """Let the values ``members``, made by ``maker``, lie in ``host``.

        Returns:
            Whether no moment is fuller than the fullest was; else nothing moves.
        """
        members = list(members)
        size, first, last = self._spans[self._of[members[0]]]
        read = max(self._last[number] for number in members)
        live = list(self._live)
        # Before and after, others may have had the same memory.
        begin = maker if first == maker else maker + 1
        end = max(read, maker) if last <= max(read, maker) else read - 1
        _add(live, begin, end, -size)
        place = self._of[host]
        room, begins, ends = self._spans[place]
        if begins >= 0:
            _add(live, min(maker, begins), begins - 1, room)
            _add(live, ends + 1, max(read, ends), room)
        if max(live) > self._most:
            return False
        self._live = live
        self._spans[place] = (room, min(maker, begins), max(read, ends))
        return True


def _add(live: list[int], first: int, last: int, size: int) -> None:
    for index in range(first, last + 1):
        live[index] += size
