"""Devices that run all the time: a step whenever enough updates have come."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.federated.conftest import World
from tests.federated.crews import wired

import edgewise as ew
from edgewise_federated import Device, FederatedHistory, Privacy, Update
from edgewise_federated.agenda import Agenda
from edgewise_federated.order import Order, Reply
from edgewise_trainer import Trainer, optimizers

SPEEDS = [1.0, 1.0, 0.7, 0.5, 0.3, 0.2, 0.11, 0.05]
BUFFERED = {
    "mode": "buffered",
    "buffer_size": 3,
    "clients_per_round": 5,
    "devices": [Device(speed=speed) for speed in SPEEDS],
}


def rows(history: FederatedHistory) -> list[tuple[object, ...]]:
    """Rounds without what the clock of this machine says."""
    return [one._replace(seconds=0.0) for one in history.rounds]


def test_steps_are_those_of_the_paper(world: World) -> None:
    """Algorithm 1, by hand: who comes when, with which model, and for how much."""
    size = max(len(y) for _, y in world.partitions)
    setting = {**BUFFERED, "batch_size": size, "rounds": 6}
    asked: list[tuple[int, int]] = []  # (device, round in which it came)

    def look(number: int, client: int, update: Update) -> Update:
        asked.append((client, number))
        return update

    history = world.run(look, **setting)
    _, wire = wired(world, lambda reply: by_speed(world, reply), **setting)
    begun = begun_at(wire.sent, world)
    models = [world.model.parameters()]
    for number in range(1, 7):
        came = [client for client, when in asked if when == number]
        assert len(came) == 3
        changes, weights = [], []
        for client in came:
            version = begun[client].pop(0)
            x, y = world.partitions[client]
            trainer = Trainer(world.model, "cross_entropy", optimizers.SGD(0.1))
            trainer.set_parameters(models[version])
            trainer.step(x, y)
            share = 1 / math.sqrt(number - version)
            now = trainer.parameters()
            changes.append({k: share * (now[k] - models[version][k]) for k in now})
            weights.append(len(y))
        models.append(
            {
                name: value
                + np.average([c[name] for c in changes], axis=0, weights=weights)
                for name, value in models[-1].items()
            }
        )
    for name, value in history.model.parameters().items():
        np.testing.assert_allclose(value, models[-1][name], atol=1e-5)
    # Slow devices did come, with old models.
    assert {client for client, _ in asked} >= {4, 5}


def by_speed(world: World, reply: Reply) -> list[tuple[float, Reply]]:
    """As a fleet has it."""
    count = len(world.partitions[reply.device][1])
    return [(count / (1000 * SPEEDS[reply.device]), reply)]


def begun_at(sent: list[tuple[int, Order]], world: World) -> dict[int, list[int]]:
    """For each device the versions of the model with which it began, in turn."""
    versions: dict[int, int] = {}
    begun: dict[int, list[int]] = {device: [] for device in range(8)}
    for device, order in sent:
        version = versions.setdefault(id(order.values), len(versions))
        begun[device].append(version)
    assert len(world.partitions) == len(begun)
    return begun


def test_a_fleet_answers_in_the_order_of_its_speeds(world: World) -> None:
    """Simulated time is that of a transport which takes as long."""
    setting = {**BUFFERED, "rounds": 5}
    simulated = world.run(**setting)
    over, _ = wired(world, lambda reply: by_speed(world, reply), **setting)
    for name, value in simulated.model.parameters().items():
        np.testing.assert_array_equal(over.model.parameters()[name], value)


def test_slow_devices_hold_nobody_up(world: World) -> None:
    """The same number of updates, in a part of the time."""
    devices = BUFFERED["devices"]
    together = world.run(rounds=6, clients_per_round=4, devices=devices)
    buffered = world.run(**{**BUFFERED, "buffer_size": 4, "rounds": 6})
    times = [sum(one.waited for one in h.rounds) for h in (together, buffered)]
    assert times[1] < 0.5 * times[0]
    assert buffered.rounds[-1].loss < buffered.rounds[0].loss


@pytest.mark.parametrize("strategy", ["fedavg", "fedprox", "fedavgm", "fedadam"])
def test_buffers_learn(world: World, strategy: str) -> None:
    history = world.run(
        **{**BUFFERED, "rounds": 25, "local_epochs": 2, "strategy": strategy}
    )
    last = history.rounds[-1]
    assert last.accuracy is not None
    assert last.accuracy > 0.7


@pytest.mark.parametrize(
    "setting",
    [
        {"strategy": "fedadam", "codec": "int4"},
        {"strategy": "fedavgm", "personal": "last:1"},
        {"buffer_size": None},
        {"devices": None},
    ],
)
def test_a_killed_run_goes_on_to_the_bit(
    world: World, tmp_path: Path, setting: dict[str, object]
) -> None:
    given = {**BUFFERED, "rounds": 7, **setting}
    whole = world.run(**given)

    def die(number: int, client: int, update: Update) -> Update:
        del client
        if number == 4:
            raise KeyboardInterrupt
        return update

    folder = str(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        world.run(die, checkpoint_dir=folder, **given)
    again = world.run(checkpoint_dir=folder, **given)
    assert rows(again) == rows(whole)
    for name, value in whole.model.parameters().items():
        np.testing.assert_array_equal(again.model.parameters()[name], value)


def test_who_never_answers_is_late_and_replaced(world: World) -> None:
    def fate(reply: Reply) -> list[tuple[float, Reply]]:
        return [] if reply.device in (0, 1) else [(10.0, reply)]

    setting = {**BUFFERED, "devices": None, "rounds": 12, "quorum": 0.3}
    history, wire = wired(world, fate, **setting)
    failures = sum(one.failures for one in history.rounds)
    asked = [device for device, _ in wire.sent]
    assert 0 < failures <= asked.count(0) + asked.count(1)
    assert all(one.clients - one.failures == 3 for one in history.rounds)


def test_replies_of_orders_that_are_over_are_not_taken(world: World) -> None:
    def late(reply: Reply) -> list[tuple[float, Reply]]:
        return [(70.0 if reply.device < 2 else 10.0, reply)]

    def never(reply: Reply) -> list[tuple[float, Reply]]:
        return [] if reply.device < 2 else [(10.0, reply)]

    def twice(reply: Reply) -> list[tuple[float, Reply]]:
        return never(reply) * 2

    setting = {**BUFFERED, "devices": None, "rounds": 12, "quorum": 0.3}
    ends = [wired(world, f, **setting)[0] for f in (late, never, twice)]
    for other in ends[1:]:
        for name, value in ends[0].model.parameters().items():
            np.testing.assert_array_equal(other.model.parameters()[name], value)


@pytest.mark.parametrize("quorum", [0.0, 0.5])
def test_where_nobody_answers_the_run_ends(world: World, quorum: float) -> None:
    with pytest.raises(ew.FederatedError, match=r"step 1: 0 of .* gave an update"):
        world.run(lambda *_: None, **{**BUFFERED, "quorum": quorum})


def test_nobody_to_ask(world: World) -> None:
    devices = [Device(available=0.0)] * 8
    with pytest.raises(ew.FederatedError, match="step 1: no device"):
        world.run(**{**BUFFERED, "devices": devices})


@pytest.mark.parametrize(
    "other",
    [
        {"secure_aggregation": True},
        {"privacy": Privacy(clip=1.0, noise_multiplier=1.0)},
        {"strategy": "scaffold"},
        {"strategy": "krum"},
        {"strategy": "fedmedian"},
        {"strategy": "trimmed_mean"},
    ],
)
def test_what_needs_whole_rounds_is_refused(
    world: World, other: dict[str, object]
) -> None:
    name = next(iter(other))
    with pytest.raises(ew.ConfigError, match=f"mode='buffered' with {name}="):
        world.run(**BUFFERED, **other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "async"},
        {"buffer_size": 0},
        {"buffer_size": 1.5},
        {"mode": "sync", "buffer_size": 3},
        {"deadline_s": 0.0},
        {"deadline_s": float("nan")},
    ],
)
def test_what_cannot_be_meant(world: World, wrong: dict[str, object]) -> None:
    with pytest.raises(ew.ConfigError):
        world.run(**{**BUFFERED, **wrong})


ACTIONS = st.lists(
    st.tuples(st.integers(0, 4), st.floats(0, 5), st.booleans()), max_size=30
)


@settings(max_examples=40, deadline=None)
@given(ACTIONS, st.integers(0, 30))
def test_an_agenda_that_is_kept_goes_on_the_same(
    actions: list[tuple[int, float, bool]], cut: int
) -> None:
    """Whenever it is kept; and its clock never goes back."""

    def run(agendas: list[Agenda]) -> list[tuple[float, int | None]]:
        seen = []
        for turn, (device, seconds, asks) in enumerate(actions):
            if turn == cut and len(agendas) == 2:
                agendas[1].remember(agendas[0].memory())
                agendas.pop(0)
            now = agendas[0]
            if asks:
                values = np.full(2, turn // 3, np.float32)
                now.add(device, Order(turn, values, 1), seconds)
            else:
                task = now.next(now.time + seconds)
                seen.append((now.time, task.order.number if task else None))
        return seen

    plain = run([Agenda()])
    assert run([Agenda(), Agenda()]) == plain
    times = [time for time, _ in plain]
    assert times == sorted(times)
