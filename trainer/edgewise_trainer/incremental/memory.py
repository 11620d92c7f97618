"""A memory of examples under a cap of bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import numpy as np

from edgewise.errors import CheckpointError, ConfigError
from edgewise.ir.op import Array
from edgewise.runtime.memory import share_of_machine
from edgewise_trainer.incremental.codec import Codec, Codes
from edgewise_trainer.incremental.policy import (
    ANY,
    POLICIES,
    Occupancy,
    Policy,
    offered,
)
from edgewise_trainer.incremental.store import Blocks, Contents, Store
from edgewise_trainer.wanted import want_count


class ReplayMemory:
    """Examples of the past, as many as fit.

    Args:
        limit: Bytes of all records; with a file, of the pages that they fill.
        policy: ``"balanced"`` or ``"reservoir"``: which stay when it is full.
        path: A file that keeps them; None: they end with the process.
        seed: Of the choice.

    Attributes:
        limit: That.

    Raises:
        CheckpointError: The file is damaged, or is no such store.
    """

    def __init__(
        self,
        limit: int,
        policy: str,
        path: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> None:
        want_count("replay_bytes", limit, 0)
        self.limit, self._policy = limit, _policy(policy)
        self._unwritten: set[int] = set()
        self._path = path
        self._seed = seed
        self._store = None if path is None else Store(path)
        self._codec: Codec | None = None
        self._held = Occupancy(0)
        self._rows: Codes = np.zeros(0, np.dtype([]))
        found = None if self._store is None else self._store.read()
        if found is not None:
            self.restore(found)

    @property
    def stored(self) -> bool:
        """Whether a file keeps it."""
        return self._store is not None

    def __len__(self) -> int:
        """Examples that it holds."""
        return len(self._held)

    @property
    def capacity(self) -> int:
        """Examples that fit; 0 before the first one tells their size."""
        return self._held.capacity

    @property
    def classes(self) -> dict[int, int]:
        """How many examples of each class it holds."""
        places = self._held.places
        return {kind: len(places[kind]) for kind in sorted(places) if places[kind]}

    def add(self, inputs: Mapping[str, Array], target: Array) -> None:
        """Offer a batch: some of it may stay.

        Raises:
            ShapeError: Examples of another shape or type are in the memory.
            ConfigError: Not one of them fits, or a number is not finite.
            CheckpointError: The file cannot be written.
        """
        if not len(target):
            return
        codec = self._codec or self._begin(inputs, target)
        rows = codec.encode(inputs, target)
        # By what was seen before, so that a memory that was restored goes on alike.
        seen = sum(self._held.seen.values())
        rng = np.random.default_rng((self._seed, seen))
        slots = set()
        for number, kind in enumerate(_kinds(target)):
            slot = offered(self._held, kind, self._policy, rng)
            if slot is not None:
                self._rows[slot] = rows[number]
                slots.add(slot)
        self._write(slots)

    def sample(
        self, count: int, rng: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        """Some examples, no one twice.

        Raises:
            ConfigError: It holds none.
        """
        count = min(max(count, 0), len(self))
        return self._decoded(rng.choice(len(self), count, replace=False))

    def everything(self) -> tuple[dict[str, Array], Array]:
        """All examples, in no order.

        Raises:
            ConfigError: It holds none.
        """
        return self._decoded(np.arange(len(self)))

    def want_like(self, inputs: Mapping[str, Array], target: Array) -> None:
        """Raise ``ShapeError`` unless examples are like those that it holds."""
        if self._codec is not None:
            self._codec.want_like(inputs, target)

    def contents(self) -> Contents | None:
        """All that it holds, to be restored."""
        if self._codec is None:
            return None
        records = self._rows[: len(self)].tobytes()
        return Contents(self._codec.text(), dict(self._held.seen), records)

    def close(self) -> None:
        """Let the file go."""
        if self._store is not None:
            self._store.close()

    def _decoded(self, slots: Array) -> tuple[dict[str, Array], Array]:
        if self._codec is None or not len(slots):
            raise ConfigError("replay: the memory holds no examples yet")
        return self._codec.decode(self._rows[slots])

    def _begin(self, inputs: Mapping[str, Array], target: Array) -> Codec:
        """Learn from the first examples how large they are."""
        codec = Codec.of(inputs, target)
        self._hold(codec)
        if self._store is not None:
            self._store.create(codec.text())
        return codec

    def _hold(self, codec: Codec) -> None:
        size = codec.record.itemsize
        if not size:
            raise ConfigError(f"replay: examples of {codec} have no elements")
        if self.limit > share_of_machine():
            raise ConfigError(
                f"replay_bytes={self.limit}: want at most {share_of_machine()}, half "
                "of this machine's memory"
            )
        capacity = self.limit // size
        if self._store is not None:
            capacity = Blocks.within(size, self.limit).capacity
        if not capacity:
            raise ConfigError(
                f"replay_bytes={self.limit}: no example fits; one takes {size} bytes"
            )
        self._codec, self._held = codec, Occupancy(capacity)
        self._rows = np.zeros(capacity, codec.record)

    def restore(self, found: Contents) -> None:
        """Hold what another memory held.

        Raises:
            CheckpointError: It is damaged, or is more than fits.
        """
        try:
            codec = Codec.parsed(found.codec)
            rows = np.frombuffer(found.records, codec.record)
        except (ValueError, OverflowError) as error:
            where = self._path or "replay"
            raise CheckpointError(f"{where}: the store is damaged: {error}") from error
        self._hold(codec)
        if len(rows) > self.capacity:
            raise CheckpointError(
                f"{self._path or 'replay'}: holds {len(rows)} examples; "
                f"replay_bytes={self.limit} has room for {self.capacity}"
            )
        self._rows[: len(rows)] = rows
        for slot, kind in enumerate(_kinds(rows["target"])):
            self._held.put(kind, slot)
        self._held.seen |= found.seen
        for kind, count in self.classes.items():
            self._held.seen[kind] = max(self._held.seen.get(kind, 0), count)

    def _write(self, slots: set[int]) -> None:
        if self._store is None:
            return
        blocks = Blocks.within(self._rows.dtype.itemsize, self.limit)
        # What a full disk refused is written with what comes next.
        self._unwritten |= slots
        changed = blocks.of(self._unwritten)
        for start in range(0, len(changed), blocks.at_once):
            some = changed[start : start + blocks.at_once]
            self._store.write(dict(self._cut(some, blocks.size)), self._held.seen)
        self._unwritten.clear()

    def _cut(self, numbers: list[int], size: int) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            stop = min((number + 1) * size, len(self))
            yield number, self._rows[number * size : stop].tobytes()


def _kinds(target: Array) -> list[int]:
    """The class of each example, where targets are classes."""
    if target.ndim != 1 or target.dtype.kind not in "iu":
        return [ANY] * len(target)
    return [int(kind) for kind in target]


def _policy(name: str) -> Policy:
    if name not in POLICIES:
        raise ConfigError(f"policy={name!r}: want one of {', '.join(POLICIES)}")
    return POLICIES[name]
