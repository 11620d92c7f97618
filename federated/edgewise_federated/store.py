"""What a device behind a transport remembers, on its disk: whole after each order.

Flower keeps the state of an app in memory, and forgets it when a run ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from edgewise.errors import CheckpointError
from edgewise_federated import keep
from edgewise_federated.device import FRESH, Memory

LOCK = "lock"


class Remembered(NamedTuple):
    """A device behind its last order.

    Attributes:
        run: Of which the order was.
        number: Of the order.
        before: What the device remembered before it.
        after: What it remembers if its answer was used.
    """

    run: str
    number: int
    before: Memory
    after: Memory

    def beginning(self, run: str, number: int, used: int) -> Memory:
        """With what the device begins an order.

        Args:
            run: Of the order.
            number: Of the order; that of the last one again: a server died before it
                wrote the answer down, and goes on.
            used: The last order of the device whose answer was used; 0: none was.
        """
        if run != self.run:  # what is personal outlives a run, nothing else does
            return Memory(self.after.personal)
        if number == self.number:
            return self.before
        if used == self.number:
            return self.after
        return self.before._replace(personal=self.after.personal)


class Store:
    """A folder of one device and one model.

    Args:
        folder: Where; made when something is kept. Who else runs here cannot read it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes of the same device out.

        Raises:
            CheckpointError: The folder cannot be written.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self._folder / LOCK).open("w")
        except OSError as error:
            raise CheckpointError(f"{self._folder}: {error}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def load(self) -> Remembered | None:
        """What is kept; None: nothing yet.

        Raises:
            CheckpointError: It is damaged.
        """
        kept = keep.load(self._folder)
        if kept is None:
            return None
        try:
            run, number = str(kept.facts["run"]), int(kept.facts["number"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self._folder}: damaged: {error}") from error
        before, after = (
            Memory.of(keep.part_of(kept.arrays, part)) for part in ("before", "after")
        )
        return Remembered(run, number, before, after)

    def save(self, remembered: Remembered) -> None:
        """Keep it: whole, or not at all.

        Raises:
            CheckpointError: It cannot be written.
        """
        parts: Mapping[str, Memory] = {
            "before": remembered.before,
            "after": remembered.after,
        }
        arrays = {
            f"{part}/{name}": array
            for part, memory in parts.items()
            for name, array in memory.arrays().items()
        }
        facts = {"run": remembered.run, "number": remembered.number}
        keep.save(self._folder, keep.Kept(facts, arrays))


def begun(remembered: Remembered | None, run: str, number: int, used: int) -> Memory:
    """With what a device begins an order, whatever it remembers."""
    if remembered is None:
        return FRESH
    return remembered.beginning(run, number, used)
