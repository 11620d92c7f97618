"""How much of every task is left after each later one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np

from edgewise.ir.op import Array
from edgewise_trainer.incremental.memory import ReplayMemory
from edgewise_trainer.incremental.store import Contents
from edgewise_trainer.incremental.stream import Examples

PROBE_BYTES = 65_536  # of a task's examples, coded
LEAST_EXAMPLES = 16  # of a task, however large they are


class Forgetting:
    """The matrix: a row after each task, a column for each.

    Attributes:
        probes: A sample of every task, at eight bits.
        rows: What was measured after each task, on it and those before.
    """

    def __init__(self) -> None:
        self.probes: list[ReplayMemory] = []
        self.rows: list[list[float]] = []

    def add(
        self,
        batches: Iterable[Examples],
        measure: Callable[[list[Examples]], list[float]],
    ) -> None:
        """A task was learned.

        Args:
            batches: Its examples.
            measure: How good the model is now on each of some sets.
        """
        probe: ReplayMemory | None = None
        for inputs, target in batches:
            if probe is None:
                each = sum(array[:1].nbytes for array in inputs.values())
                limit = max(PROBE_BYTES, LEAST_EXAMPLES * (each + 64))
                probe = ReplayMemory(limit, "reservoir", seed=len(self.probes))
            probe.add(inputs, target)
        if probe is not None:
            self.probes.append(probe)
            self.rows.append(measure([probe.everything() for probe in self.probes]))

    def contents(self) -> list[Contents]:
        """The samples, to be restored."""
        return [found for probe in self.probes if (found := probe.contents())]

    @classmethod
    def restored(cls, samples: Sequence[Contents], rows: list[list[float]]) -> Self:
        """What had these samples and rows.

        Raises:
            CheckpointError: A sample is damaged.
        """
        made = cls()
        made.rows = rows
        for number, sample in enumerate(samples):
            limit = max(PROBE_BYTES, len(sample.records))
            probe = ReplayMemory(limit, "reservoir", seed=number)
            probe.restore(sample)
            made.probes.append(probe)
        return made

    def matrix(self) -> Array:
        """``[tasks, tasks]``, NaN where a task was still to come."""
        count = len(self.rows)
        found = np.full((count, count), np.nan)
        for number, row in enumerate(self.rows):
            found[number, : len(row)] = row
        return found
