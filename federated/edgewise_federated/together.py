"""Rounds of devices that are asked together; the model steps when all are done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew, Seal
from edgewise_federated.order import Order, Reply, Sums
from edgewise_federated.outcome import Outcome
from edgewise_federated.replies import Gate
from edgewise_federated.select import passes
from edgewise_federated.strategy import Strategy
from edgewise_federated.update import Layout

KEYS = 0.2  # of the deadline is for keys and shares, and as much for taking masks off


class Together:
    """Synchronous rounds.

    Args:
        config: Of the run.
        crew: The devices.
        strategy: Who is asked, and what is made of the answers.
        layout: What the numbers of the model are.
        gate: Looks at each reply.
    """

    def __init__(
        self,
        config: FederatedConfig,
        crew: Crew,
        strategy: Strategy,
        layout: Layout,
        gate: Gate,
    ) -> None:
        self._config, self._crew, self._strategy = config, crew, strategy
        self._layout, self._gate = layout, gate

    def round(self, number: int) -> Outcome:
        """Ask some devices, and wait for each until the deadline."""
        asked = self._strategy.chosen(number, self._crew)
        start, whole = self._crew.now(), self._config.deadline_s
        edge = KEYS * whole if self._config.secure_aggregation else 0.0
        seal = self._crew.seal(number, asked, start + edge) if edge else None
        there = asked if seal is None else seal.devices
        orders = self._orders(number, there, whole - 2 * edge)
        for device, order in orders.items():
            self._crew.send(device, order)
        until = start + whole - edge
        replies = self._replies(number, asked, orders.keys(), until)
        good = [reply for reply in replies if reply.update is not None]
        self._want_quorum(number, len(asked), len(good))
        if seal is not None:
            mean = self._opened(good, orders, seal, start + whole)
            self._strategy.take_sum(number, mean, len(good), self._crew)
        elif good:
            self._strategy.take(number, good, self._crew)
        self._crew.settle([reply.device for reply in good])
        return Outcome(replies, len(asked))

    def _orders(
        self, number: int, devices: Collection[int], seconds: float
    ) -> dict[int, Order]:
        """What each device is asked that has some seconds."""
        privacy, strategy = self._config.privacy, self._strategy
        members = {device: self._crew.member(device) for device in devices}
        weights = {i: 1 if privacy else m.examples for i, m in members.items()}
        total, hidden = sum(weights.values()), self._config.secure_aggregation
        return {
            device: Order(
                number,
                strategy.values,
                max(passes(member, seconds), 1),
                strategy.mu,
                strategy.control,
                privacy.clip if privacy else None,
                Sums(weights[device], total) if hidden else None,
            )
            for device, member in members.items()
        }

    def _replies(
        self,
        number: int,
        asked: Collection[int],
        sent: Collection[int],
        until: float,
    ) -> list[Reply]:
        """One reply of each device that was asked, checked, in order of devices.

        Who has not answered when the crew's clock shows ``until`` has failed.
        """
        found: dict[int, Reply] = {}
        while len(found) < len(sent):
            reply = self._crew.next(until)
            if reply is None:
                break
            awaited = reply.device in sent and reply.device not in found
            if awaited and reply.number == number:
                found[reply.device] = self._gate.checked(number, reply)
        self._crew.forget(asked)
        for device in asked:
            if device not in found:
                why = "no answer in time" if device in sent else "shared no keys"
                nothing = Reply(device, number, None)
                found[device] = self._gate.failed(number, nothing, why)
        return [found[device] for device in sorted(found)]

    def _want_quorum(self, number: int, asked: int, good: int) -> None:
        if self._config.privacy is not None:  # an empty round is as likely as it is
            return
        least = max(int(np.ceil(self._config.quorum * asked)), 1)
        if good < least:
            raise FederatedError(
                f"round {number}: {good} of {asked} devices gave an update; want"
                f" {least} (quorum={self._config.quorum:g})"
            )

    def _opened(
        self,
        good: Sequence[Reply],
        orders: Mapping[int, Order],
        seal: Seal,
        until: float,
    ) -> Array:
        """The mean change of those whose words arrived."""
        from edgewise_federated.sealed import mean  # noqa: PLC0415 - wants cryptography

        sent = {
            reply.device: self._layout.flat(reply.update.arrays).astype(np.uint32)
            for reply in good
            if reply.update is not None
        }
        told = {i: order.sums for i, order in orders.items() if order.sums is not None}
        weights = [told[device].weight for device in sent]
        total = seal.total(sent, until)
        found = mean(total, weights, max(sums.total for sums in told.values()))
        return found * self._layout.reach(self._strategy.values)

    def memory(self) -> dict[str, Array]:
        """Nothing: a round begins without anything of the last."""
        return {}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """There is nothing to take back."""
