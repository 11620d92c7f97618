"""Sums that nobody can look into: what devices hide, what the server makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.order import Sums
from edgewise_federated.secure import Fixed, Round

BOUND = 8.0  # of what a parameter can change by in a round
FEWEST = 3  # devices: of two each knows the other's part of the sum


def words(change: Array, sums: Sums) -> Array:
    """A change times the weight of its device, as words that can be masked.

    Args:
        change: Divided by ``Layout.reach``.
        sums: Weights.
    """
    return Fixed(BOUND, sums.total).encode(change, sums.weight)


def mean(total: Array, weights: Sequence[int], of_all: int) -> Array:
    """The mean change of devices, as it was divided, of the sum of their words.

    Args:
        total: The sum modulo 2**32.
        weights: Of the devices in it.
        of_all: Weight of all that were told to take part.
    """
    return Fixed(BOUND, of_all).decode(total, sum(weights))


def threshold(devices: Collection[int]) -> int:
    """How many of a round's devices must stay to its end.

    More than half: no two sets of survivors are then without a common member.

    Raises:
        FederatedError: They are so few that sums hide nobody.
    """
    if len(devices) < FEWEST:
        raise FederatedError(
            f"secure aggregation: got {len(devices)} devices; want {FEWEST} or more"
        )
    return len(devices) // 2 + 1


class Masks:
    """A round of sums of devices in one process.

    Args:
        devices: Who takes part.

    Attributes:
        devices: The same.
    """

    def __init__(self, devices: Collection[int]) -> None:
        self.devices = tuple(devices)
        self._round = Round(self.devices, threshold(self.devices))

    def mask(self, device: int) -> Callable[[Array], Array]:
        """What hides the words of a device."""
        return lambda words: self._round.mask(device, words)

    def overhead(self, device: int) -> int:
        """Bytes that a device sends beside its words."""
        return self._round.overhead(device)

    def total(self, sent: Mapping[int, Array], until: float) -> Array:
        """The sum without its masks, at once."""
        del until
        return self._round.total(sent)
