"""Channels that must go together, and those that must stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from edgewise.ir.graph import Value
from edgewise.ir.op import Array

# Of every axis of a value the channels that lie along it; None: it has none.
Labels: TypeAlias = "tuple[Array | None, ...]"


class Ties:
    """Numbers of channels, in sets that are kept or dropped as one."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._pinned: set[int] = set()

    def fresh(self, count: int) -> Array:
        """So many new channels."""
        first = len(self._parents)
        self._parents += range(first, first + count)
        return np.arange(first, first + count)

    def root(self, channel: int) -> int:
        """The one that stands for all that are tied to a channel."""
        parents = self._parents
        while parents[channel] != channel:
            parents[channel] = parents[parents[channel]]
            channel = parents[channel]
        return channel

    def roots(self, channels: Array) -> Array:
        """The root of each."""
        return np.array([self.root(c) for c in channels.tolist()], np.int64)

    def tie(self, one: Array | None, other: Array | None) -> None:
        """Let two axes of one size lose the same channels; none loses none."""
        if one is None or other is None or len(one) != len(other):
            self.pin((one, other))
            return
        for a, b in zip(one.tolist(), other.tolist(), strict=True):
            self._parents[self.root(a)] = self.root(b)

    def pin(self, labels: Sequence[Array | None]) -> None:
        """Let axes stay as they are."""
        for channels in labels:
            if channels is not None:
                self._pinned.update(channels.tolist())

    @property
    def pinned(self) -> set[int]:
        """Roots of all channels that stay."""
        return {self.root(channel) for channel in self._pinned}


def none_of(value: Value) -> Labels:
    """No channels along any axis."""
    kind = value.kind
    rank = len(getattr(kind, "shape", ()))
    return (None,) * rank
