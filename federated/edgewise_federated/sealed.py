"""A round whose server sees sums alone, over simulated devices."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.secure import Fixed, Round

BOUND = 8.0  # of what a parameter can change by in a round
FEWEST = 3  # devices: of two each knows the other's part of the sum


class Sealed:
    """One round of secure aggregation.

    Args:
        weights: Of the devices that take part, by index.
        reach: By which numbers are divided on their way: ``Layout.reach``.

    Raises:
        FederatedError: They are so few that sums hide nobody.
    """

    def __init__(self, weights: Mapping[int, int], reach: Array) -> None:
        if len(weights) < FEWEST:
            raise FederatedError(
                f"secure aggregation: got {len(weights)} devices; want {FEWEST} or more"
            )
        self._weights, self._reach = dict(weights), reach
        self._fixed = Fixed(BOUND, sum(weights.values()))
        # More than half: no two sets of survivors are then without a common member.
        self._round = Round(weights.keys(), len(weights) // 2 + 1)

    def words(self, index: int, change: Array) -> Array:
        """What a device sends: its change times its weight, under masks."""
        words = self._fixed.encode(change / self._reach, self._weights[index])
        return self._round.mask(index, words)

    def overhead(self, index: int) -> int:
        """Bytes that a device sends beside its words."""
        return self._round.overhead(index)

    def mean(self, sent: Mapping[int, Array]) -> Array:
        """The mean of the devices whose words arrived, by weights.

        Raises:
            FederatedError: They are too few to take the masks off.
        """
        weight = sum(self._weights[index] for index in sent)
        return self._fixed.decode(self._round.total(sent), weight) * self._reach
