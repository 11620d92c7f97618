"""A round whose server sees sums alone, over simulated devices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.secure import Collector, Fixed, Party

BOUND = 8.0  # of what a parameter can change by in a round
FEWEST = 3  # devices: of two each knows the other's part of the sum


class Sealed:
    """One round of secure aggregation.

    Args:
        weights: Of the devices that take part, by index.

    Raises:
        FederatedError: They are so few that sums hide nobody.
    """

    def __init__(self, weights: Mapping[int, int]) -> None:
        if len(weights) < FEWEST:
            raise FederatedError(
                f"secure aggregation: got {len(weights)} devices; want {FEWEST} or more"
            )
        self._weights = dict(weights)
        # More than half: no two sets of survivors are then without a common member.
        self._threshold = len(weights) // 2 + 1
        self._fixed = Fixed(BOUND, sum(weights.values()))
        self._parties = {i: Party(i, self._threshold) for i in weights}
        self._keys = {i: party.advertise() for i, party in self._parties.items()}
        self._boxes = {i: p.share(self._keys) for i, p in self._parties.items()}

    def words(self, index: int, change: Array) -> Array:
        """What a device sends: its change times its weight, under masks."""
        words = self._fixed.encode(change, self._weights[index])
        boxes = {j: box[index] for j, box in self._boxes.items() if j != index}
        return self._parties[index].mask(words, boxes)

    def overhead(self, index: int) -> int:
        """Bytes that a device sends beside its words: keys, and shares for others."""
        keys = len(self._keys[index].to_bytes())
        return keys + sum(map(len, self._boxes[index].values()))

    def mean(self, sent: Mapping[int, Array]) -> Array:
        """The mean of the devices whose words arrived, by weights.

        Raises:
            FederatedError: They are too few to take the masks off.
        """
        total = np.zeros_like(next(iter(sent.values())))
        for words in sent.values():
            total = total + words
        reveals = {i: self._parties[i].reveal(sent.keys()) for i in sent}
        collector = Collector(self._threshold)
        summed = collector.unmask(total, self._keys, sent.keys(), reveals)
        return self._fixed.decode(summed, sum(self._weights[i] for i in sent))
