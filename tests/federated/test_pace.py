"""Devices of which nobody said how fast they are."""

from __future__ import annotations

import hypothesis
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.federated.conftest import World
from tests.federated.crews import Wire, fleet_of

from edgewise_federated import FederatedConfig
from edgewise_federated.order import Order, Reply
from edgewise_federated.pace import Paced
from edgewise_federated.select import chosen, passes

SECONDS = 25.0  # that a pass takes on device 0


def crew(world: World) -> tuple[Paced, Wire]:
    """A slow device, a fast one, and those that never answer."""

    def fate(reply: Reply) -> list[tuple[float, Reply]]:
        times = {0: SECONDS * wire.sent[-1][1].epochs, 1: 1.0}
        return [(times[reply.device], reply)] if reply.device in times else []

    wire = Wire(fleet_of(world, FederatedConfig(local_epochs=4)), fate)
    return Paced(wire, 60.0), wire


def rounds(paced: Paced, world: World, count: int) -> list[list[int]]:
    """Passes that devices 0 to 2 were asked for in each round."""
    values = np.concatenate([v.ravel() for v in world.model.parameters().values()])
    seen = []
    for number in range(1, count + 1):
        until = paced.now() + 60.0
        epochs = [passes(paced.member(device), 60.0) for device in range(3)]
        for device in range(3):
            paced.send(device, Order(number, values, epochs[device]))
        while paced.next(until) is not None:
            pass
        paced.forget(range(3))
        seen.append(epochs)
    return seen


def test_slow_devices_are_asked_for_less_until_they_answer_in_time(
    world: World,
) -> None:
    paced, _ = crew(world)
    slow, fast, silent = zip(*rounds(paced, world, 6), strict=True)
    assert slow[:3] == (4, 1, 1)
    assert slow[-1] == 2  # 50 of 60 seconds: as much as there is time for
    assert set(fast) == {4}
    assert silent == (4, 1, 1, 1, 1, 1)


@hypothesis.settings(max_examples=15, deadline=None)
@given(st.floats(1e-3, 1e6), st.integers(1, 10**6))
def test_nobody_is_thought_too_slow_to_be_asked(
    world: World, seconds: float, examples: int
) -> None:
    wire = crew(world)[1]
    member = wire.member(2)._replace(examples=examples)
    wire.member = lambda device: member  # type: ignore[method-assign]  # of that size
    paced = Paced(wire, seconds)
    values = np.concatenate([v.ravel() for v in world.model.parameters().values()])
    for number in (1, 2):
        paced.send(2, Order(number, values, 1))
        assert paced.next(wire.now() + seconds) is None
        paced.forget([2])
    assert paced.member(2).speed < examples / seconds * 1.2
    assert passes(paced.member(2), seconds) == 1
    config = FederatedConfig(clients_per_round=8, deadline_s=seconds)
    assert chosen(config, paced, 1) == list(range(8))


def test_what_was_seen_is_kept(world: World) -> None:
    paced, _ = crew(world)
    rounds(paced, world, 4)
    again, _ = crew(world)
    again.remember(paced.memory())
    for device in range(8):
        assert again.member(device).speed == paced.member(device).speed
    assert again.member(0).speed < again.member(1).speed


def test_what_was_said_counts_more_than_what_was_seen(world: World) -> None:
    paced, wire = crew(world)
    rounds(paced, world, 2)
    said = wire.member(0)._replace(speed=5.0)
    wire.member = lambda device: said  # type: ignore[method-assign]  # one that says it
    assert paced.member(0).speed == 5.0
