"""Devices run all the time; the model steps whenever enough updates have come.

FedBuff (Nguyen et al., 2022, algorithm 1): whoever answers is replaced by another that
begins with the model as it is now.  An update that began ``s`` steps ago counts for
``1 / sqrt(1 + s)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.order import Order, Reply
from edgewise_federated.outcome import Outcome
from edgewise_federated.replies import Gate
from edgewise_federated.select import passes, someone
from edgewise_federated.strategy import Strategy


class Ask(NamedTuple):
    """An order that is under way.

    Attributes:
        device: Who was asked.
        begun: Steps that the model had taken then.
        until: When its answer is late, by the crew's clock.
    """

    device: int
    begun: int
    until: float


class Buffered:
    """Steps of a buffer of updates.

    Args:
        config: Of the run.
        crew: The devices.
        strategy: What is made of the answers.
        gate: Looks at each reply.
    """

    def __init__(
        self, config: FederatedConfig, crew: Crew, strategy: Strategy, gate: Gate
    ) -> None:
        self._config, self._crew, self._strategy = config, crew, strategy
        self._gate = gate
        self._asks: dict[int, Ask] = {}  # by number of the order
        self._sent = 0

    def round(self, number: int) -> Outcome:
        """Wait until the buffer is full, and step."""
        before, good, bad = self._sent, list[Reply](), list[Reply]()
        size = self._config.buffer
        while len(good) < size:
            self._fill(number)
            reply = self._next(number)
            (bad if reply.update is None else good).append(reply)
            self._want_quorum(number, len(good), len(bad))
        good.sort(key=lambda reply: (reply.device, reply.number))
        self._strategy.take(number, good, self._crew)
        return Outcome([*good, *bad], self._sent - before)

    def _fill(self, number: int) -> None:
        """Ask devices until as many are at work as shall be."""
        config = self._config
        while len(self._asks) < config.clients_per_round:
            busy = {ask.device for ask in self._asks.values()}
            device = someone(config, self._crew, self._sent + 1, busy)
            if device is None:
                break
            self._sent += 1
            strategy, member = self._strategy, self._crew.member(device)
            epochs = passes(member, config.deadline_s)
            order = Order(self._sent, strategy.values, epochs, strategy.mu)
            until = self._crew.now() + config.deadline_s
            self._asks[self._sent] = Ask(device, number - 1, until)
            self._crew.send(device, order)
        if not self._asks:
            raise FederatedError(f"step {number}: no device is there to be asked")

    def _next(self, number: int) -> Reply:
        """The next answer, by its age; or one that did not come in time."""
        while True:
            late = min(self._asks, key=lambda key: (self._asks[key].until, key))
            reply = self._crew.next(self._asks[late].until)
            if reply is None:
                ask = self._asks.pop(late)
                self._crew.forget([ask.device])
                nothing = Reply(ask.device, late, None)
                return self._gate.failed(number, nothing, "no answer in time")
            asked = self._asks.get(reply.number)
            if asked is not None and asked.device == reply.device:
                del self._asks[reply.number]
                return self._taken(number, reply, number - 1 - asked.begun)

    def _taken(self, number: int, reply: Reply, stale: int) -> Reply:
        """A reply whose update counts the less the older it is."""
        found = self._gate.checked(number, reply)
        if found.update is None:
            return found
        self._crew.settle([found.device])
        share = np.float32(1 / math.sqrt(1 + stale))
        arrays = {name: array * share for name, array in found.update.arrays.items()}
        return found._replace(update=found.update.replace(arrays=arrays))

    def _want_quorum(self, number: int, good: int, bad: int) -> None:
        """Raise once so many failed that the rest cannot be enough any more."""
        size = self._config.buffer
        share = max(self._config.quorum, 1 / (1 + self._crew.size))
        if size < share * (size + bad):
            raise FederatedError(
                f"step {number}: {good} of {good + bad} devices gave an update; want"
                f" {size} of at most {int(size / share)}"
                f" (quorum={self._config.quorum:g})"
            )

    def memory(self) -> dict[str, Array]:
        """Who is at work."""
        rows = [(key, *ask) for key, ask in self._asks.items()]
        return {"asks": np.array(rows, np.float64), "sent": np.array(self._sent)}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave, of whom the crew still knows."""
        self._sent, busy = int(memory["sent"]), self._crew.busy()
        for key, device, begun, until in memory["asks"].tolist():
            if busy.get(int(device)) == int(key):
                self._asks[int(key)] = Ask(int(device), int(begun), until)
