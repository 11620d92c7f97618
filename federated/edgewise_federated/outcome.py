"""What a round came to, whatever the way in which devices were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from edgewise.ir.op import Array
from edgewise_federated.order import Reply


class Outcome(NamedTuple):
    """One round.

    Attributes:
        replies: Of all devices that were asked or awaited, in order of devices.
        orders: How many were asked, who all were sent the model.
    """

    replies: Sequence[Reply]
    orders: int

    @property
    def failures(self) -> int:
        """Devices that gave nothing that could be used."""
        return sum(reply.update is None for reply in self.replies)


class Way(Protocol):
    """How devices are asked, and when the model of all steps."""

    def round(self, number: int) -> Outcome:
        """Ask, wait, and let one round into the model.

        Raises:
            FederatedError: Too few devices gave an update.
        """

    def memory(self) -> dict[str, Array]:
        """What has to be kept for a run that goes on, by name."""

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
