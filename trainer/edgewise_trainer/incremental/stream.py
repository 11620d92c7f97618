"""What a task is trained on: its own batches, examples of the past, old answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise_trainer.data import Data, as_target, batches
from edgewise_trainer.incremental.memory import ReplayMemory

Examples: TypeAlias = "tuple[Mapping[str, Array], Array]"
Named: TypeAlias = Callable[["Array | Mapping[str, Array]"], Mapping[str, Array]]

ANY_SIZE = 4096  # of batches whose inputs nothing reads


class TaskData:
    """The batches of a task, by the names of the inputs, any number of times.

    Args:
        data: As ``Trainer.fit`` takes it.
        named: Inputs by name, and up to the cut if there is one.
        dtype: Of targets.

    Raises:
        ConfigError: The batches can be passed over once only.
    """

    def __init__(self, data: Data, named: Named, dtype: np.dtype[np.generic]) -> None:
        if isinstance(data, Iterator):
            raise ConfigError(
                f"data: got a {type(data).__name__}, which ends after one pass; want "
                "(inputs, targets), or batches that can be passed over again"
            )
        self._data, self._named, self._dtype = data, named, dtype
        self._classes: frozenset[int] | None = None

    def classes(self) -> frozenset[int]:
        """Classes among the targets; none where those are no whole numbers.

        Targets below 0 are those that do not count.
        """
        if self._classes is None:
            found: set[int] = set()
            for _, target in batches(self._data, ANY_SIZE, None):
                array = as_target(target, self._dtype)
                if array.dtype.kind in "iu":
                    found |= set(np.unique(array[array >= 0]).tolist())
            self._classes = frozenset(found)
        return self._classes

    def batches(
        self, size: int, order: np.random.Generator | None
    ) -> Iterator[Examples]:
        """One pass: arrays in batches of ``size``, batches as they come."""
        for inputs, target in batches(self._data, size, order):
            yield self._named(inputs), as_target(target, self._dtype)

    def singles(self, count: int, rng: np.random.Generator) -> Iterator[Examples]:
        """At most ``count`` examples, one at a time."""
        left = count
        for inputs, target in self.batches(count, rng):
            for place in range(min(len(target), left)):
                one = slice(place, place + 1)
                yield {k: x[one] for k, x in inputs.items()}, target[one]
            left -= len(target)
            if left <= 0:
                return


class Mixed:
    """The batches that a trainer gets, anew for each pass.

    Args:
        data: The new task.
        size: New examples of a batch.
        memory: Examples of the past; None: there are none.
        share: Old examples for each new one.
        record: Adds old answers to targets.
        seed: Of order and choice.
    """

    def __init__(
        self,
        data: TaskData,
        size: int,
        memory: ReplayMemory | None,
        share: float,
        record: Callable[[Mapping[str, Array], Array], Array] | None,
        seed: tuple[int, ...],
    ) -> None:
        self._data, self._size, self._share = data, size, share
        self._memory = memory if memory is not None and len(memory) else None
        self._record, self._seed, self._passes = record, seed, 0

    def __iter__(self) -> Iterator[Examples]:
        """One pass."""
        self._passes += 1
        rng = np.random.default_rng((*self._seed, self._passes))
        for new in self._data.batches(self._size, rng):
            inputs, target = self._with_old(new, rng)
            yield (
                inputs,
                target if self._record is None else self._record(inputs, target),
            )

    def _with_old(self, new: Examples, rng: np.random.Generator) -> Examples:
        if self._memory is None:
            return new
        self._memory.want_like(*new)
        count = max(round(len(new[1]) * self._share), 1)
        return _joined(new, self._memory.sample(count, rng))


def _joined(new: Examples, old: Examples) -> Examples:
    inputs = {key: np.concatenate([new[0][key], old[0][key]]) for key in new[0]}
    return inputs, np.concatenate([new[1], old[1]])
