"""How fast devices are of which nobody said it: what they were seen to manage."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from edgewise.ir.op import Array
from edgewise_federated.crew import Crew, Seal
from edgewise_federated.order import Member, Order, Reply
from edgewise_federated.select import ROOM


class Asked(NamedTuple):
    """An order whose answer is awaited.

    Attributes:
        number: Of the order.
        work: Examples that the device passes over for it.
        since: When it was sent.
    """

    number: int
    work: int
    since: float


class Paced:
    """A crew whose members are known better with every answer.

    The speed of a device is the mean of what was thought of it and what its last
    answer took, the way included; who did not answer in time is thought half as fast
    as would have been enough.  Nobody is thought so slow as not to be asked at all: it
    may have been the way, or something else that the device was doing.

    Args:
        crew: The devices.
        deadline_s: Seconds in which they have to answer.
    """

    def __init__(self, crew: Crew, deadline_s: float) -> None:
        self._crew, self._time = crew, ROOM * deadline_s
        self._asked: dict[int, Asked] = {}
        self._speed: dict[int, float] = {}

    @property
    def size(self) -> int:
        """How many devices there are."""
        return self._crew.size

    def now(self) -> float:
        """As the crew has it, like the rest."""
        return self._crew.now()

    def present(self, want: int) -> Sequence[int]:
        """Who can be asked."""
        return self._crew.present(want)

    def member(self, device: int) -> Member:
        """What is known of a device, by now."""
        member = self._crew.member(device)
        if isfinite(member.speed) or device not in self._speed:
            return member
        least = member.examples / self._time
        return member._replace(speed=max(self._speed[device], least))

    def seal(self, number: int, devices: Sequence[int], until: float) -> Seal:
        """Exchange keys."""
        return self._crew.seal(number, devices, until)

    def send(self, device: int, order: Order) -> None:
        """Ask, and look at the clock."""
        member = self._crew.member(device)
        if not isfinite(member.speed):
            work = member.examples * order.epochs
            self._asked[device] = Asked(order.number, work, self._crew.now())
        self._crew.send(device, order)

    def next(self, until: float) -> Reply | None:
        """The next reply, and what it says of its device."""
        reply = self._crew.next(until)
        asked = None if reply is None else self._asked.get(reply.device)
        if reply is not None and asked is not None and asked.number == reply.number:
            del self._asked[reply.device]
            seconds = self._crew.now() - asked.since
            if reply.update is not None and seconds > 0:
                found = asked.work / seconds
                old = self._speed.get(reply.device, found)
                self._speed[reply.device] = (old + found) / 2
        return reply

    def forget(self, devices: Collection[int]) -> None:
        """Who has not answered by now is slow."""
        now = self._crew.now()
        for device in self._asked.keys() & set(devices):
            asked = self._asked.pop(device)
            if now > asked.since:
                most = asked.work / (now - asked.since)
                self._speed[device] = min(self._speed.get(device, inf), most) / 2
        self._crew.forget(devices)

    def busy(self) -> Mapping[int, int]:
        """Who is at work."""
        return self._crew.busy()

    def settle(self, taken: Collection[int]) -> None:
        """Whose replies were used."""
        self._crew.settle(taken)

    def facts(self) -> dict[str, Any]:
        """What has to be so again."""
        return self._crew.facts()

    def memory(self) -> dict[str, Array]:
        """What the crew remembers, and speeds."""
        rows = np.array(sorted(self._speed.items()), np.float64)
        return {**self._crew.memory(), "speeds": rows}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
        rows, kept = memory["speeds"].tolist(), {**memory}
        self._speed = {int(device): speed for device, speed in rows}
        del kept["speeds"]
        self._crew.remember(kept)
