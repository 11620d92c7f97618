"""Crews for tests: a fleet behind a transport that delays, drops and spoils."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tests.federated.conftest import World

from edgewise_federated import FederatedConfig, FederatedHistory
from edgewise_federated.client import Data
from edgewise_federated.crew import Seal
from edgewise_federated.fleet import Fleet
from edgewise_federated.norms import numbers
from edgewise_federated.order import Member, Order, Reply
from edgewise_federated.rounds import Loop
from edgewise_federated.strategy import strategy_of
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer, optimizers


class Late(NamedTuple):
    """A reply on its way."""

    due: float
    turn: int
    reply: Reply


# What becomes of a reply: those that arrive, each after some seconds.
Fate = Callable[[Reply], list[tuple[float, Reply]]]


class Wire:
    """A fleet whose replies take their time, by a clock of its own.

    Args:
        fleet: Answers, at once.
        fate: What becomes of each reply.
        jump: By how much the clock jumps whenever something is asked.
    """

    def __init__(self, fleet: Fleet, fate: Fate, jump: float = 0.0) -> None:
        self._fleet, self._fate, self._jump = fleet, fate, jump
        self._time, self._turn = 0.0, 0
        self._coming: list[Late] = []
        self.size, self.sent = fleet.size, list[tuple[int, Order]]()

    def now(self) -> float:
        return self._time

    def present(self, want: int) -> Sequence[int]:
        return self._fleet.present(want)

    def member(self, device: int) -> Member:
        return self._fleet.member(device)

    def seal(self, number: int, devices: Sequence[int], until: float) -> Seal:
        return self._fleet.seal(number, devices, until)

    def send(self, device: int, order: Order) -> None:
        self.sent.append((device, order))
        self._fleet.send(device, order)
        reply = self._fleet.next(float("inf"))
        assert reply is not None
        for seconds, one in self._fate(reply):
            self._turn += 1
            heapq.heappush(self._coming, Late(self._time + seconds, self._turn, one))
        self._time += self._jump

    def next(self, until: float) -> Reply | None:
        if not self._coming or self._coming[0].due > until:
            self._time = max(self._time, until)
            return None
        late = heapq.heappop(self._coming)
        self._time = max(self._time, late.due)
        return late.reply

    def forget(self, devices: Collection[int]) -> None:
        """A transport cannot call back what is on its way: it arrives, late."""

    def busy(self) -> Mapping[int, int]:
        return {late.reply.device: late.reply.number for late in self._coming}

    def settle(self, taken: Collection[int]) -> None:
        self._fleet.settle(taken)

    def facts(self) -> dict[str, object]:
        return self._fleet.facts()

    def memory(self) -> dict[str, np.ndarray]:
        return self._fleet.memory()

    def remember(self, memory: Mapping[str, np.ndarray]) -> None:
        self._fleet.remember(memory)


def layout_of(world: World) -> Layout:
    """All parameters."""
    arrays = numbers(world.model)
    return Layout({name: array.shape for name, array in arrays.items()})


def fleet_of(
    world: World, config: FederatedConfig, partitions: Sequence[Data] | None = None
) -> Fleet:
    """The devices of a world."""
    data = world.partitions if partitions is None else partitions
    ways = ("cross_entropy", optimizers.SGD(0.1))
    return Fleet(world.model, data, config, layout_of(world), *ways, ())


def wired(
    world: World, fate: Fate, jump: float = 0.0, **settings: object
) -> tuple[FederatedHistory, Wire]:
    """A run over a wire, and the wire."""
    given = {"rounds": 3, "clients_per_round": 4, "batch_size": 10}
    config = FederatedConfig(**(given | settings))  # type: ignore[arg-type]
    layout, wire = layout_of(world), Wire(fleet_of(world, config), fate, jump)
    values = layout.flat(numbers(world.model))
    trainer = Trainer(world.model, "cross_entropy", optimizers.SGD(0.1))
    strategy = strategy_of(config, layout, values)
    loop = Loop(config, wire, strategy, layout, trainer, world.test, None)
    return loop.run(), wire
