"""Where devices live, as the loop sees it: in this process, or behind a transport."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from edgewise.ir.op import Array
from edgewise_federated.order import Member, Order, Reply


class Seal(Protocol):
    """A round of sums in which devices have exchanged keys and shares."""

    @property
    def devices(self) -> Collection[int]:
        """Who takes part: those of the devices asked that shared in time."""

    def total(self, sent: Mapping[int, Array], until: float) -> Array:
        """The sum modulo 2**32 of the words that arrived, without their masks.

        Args:
            sent: Masked words of the devices that stayed, uint32.
            until: When waiting for what takes the masks off ends, by the crew's clock.

        Raises:
            FederatedError: Too few stayed.
        """


class Crew(Protocol):
    """Devices, numbered from 0 on, that can be asked and answer when they can.

    The crew has a clock: that of a transport is ``time.monotonic``, that of a
    simulation goes as fast as it is looked at.
    """

    @property
    def size(self) -> int:
        """How many devices there are, present or not."""

    def now(self) -> float:
        """Seconds of the crew's clock, which never goes back; from any beginning."""

    def present(self, want: int) -> Sequence[int]:
        """Devices that can be asked now, in order.

        Args:
            want: How many the loop would like; a transport may wait for so many, but
                not without end.

        Raises:
            FederatedError: Nobody came.
        """

    def member(self, device: int) -> Member:
        """What is known of a device."""

    def seal(self, number: int, devices: Sequence[int], until: float) -> Seal:
        """Let devices exchange keys and shares for the orders of a number to come.

        Sums are of the whole layout: who sends a part of it takes no part.

        Raises:
            FederatedError: They are so few that sums hide nobody.
        """

    def send(self, device: int, order: Order) -> None:
        """Ask a device; the answer is a reply of the order's number, or never comes."""

    def next(self, until: float) -> Reply | None:
        """The next reply; None once the clock shows ``until``, or none is to come.

        Never waits beyond ``until``, whatever a device does.
        """

    def forget(self, devices: Collection[int]) -> None:
        """What is still to come of past orders of devices is not wanted any more."""

    def busy(self) -> Mapping[int, int]:
        """Devices whose replies are still to come, and the numbers of their orders."""

    def settle(self, taken: Collection[int]) -> None:
        """Replies of these devices were used: what hangs on that is theirs for good.

        What a device has lost to its codec, and its control, change with an update
        that was used, and with no other.
        """

    def facts(self) -> dict[str, Any]:
        """What has to be so again for a run to go on: plain values."""

    def memory(self) -> dict[str, Array]:
        """What has to be kept for a run that goes on, by name."""

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
