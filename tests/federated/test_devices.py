"""Devices that differ: in speed, in presence, in what they train and how often."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.federated.conftest import World
from tests.federated.crews import fleet_of, layout_of

import edgewise as ew
from edgewise_federated import Device, FederatedConfig, Privacy, Update
from edgewise_federated.aggregate import mean, median
from edgewise_federated.join import joined
from edgewise_federated.select import chosen, passes
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer, optimizers

LAST = {"w2", "b2"}
WEIGHTS = {"w1", "w2"}
# What the eight devices of these tests train.
TRAINABLE = ["all", "last:1", "lora:2", ["b1", "b2"]] * 2


def sent_by(world: World, **settings: object) -> dict[int, Update]:
    """The updates of one round of all devices."""
    seen: dict[int, Update] = {}

    def look(number: int, client: int, update: Update) -> Update:
        del number
        seen[client] = update
        return update

    world.run(look, rounds=1, clients_per_round=8, **settings)
    return seen


def test_devices_send_what_they_train_and_each_parameter_is_joined_over_its_senders(
    world: World,
) -> None:
    devices = [Device(trainable=part) for part in TRAINABLE]
    updates = sent_by(world, devices=devices)
    names = [set(update.arrays) for _, update in sorted(updates.items())]
    assert names == [WEIGHTS | {"b1", "b2"}, LAST, WEIGHTS, {"b1", "b2"}] * 2
    history = world.run(rounds=1, clients_per_round=8, devices=devices)
    start, end = world.model.parameters(), history.model.parameters()
    for name, value in end.items():
        mine = [u for u in updates.values() if name in u.arrays]
        weights = [u.examples for u in mine]
        change = np.average([u.arrays[name] for u in mine], axis=0, weights=weights)
        np.testing.assert_allclose(value, start[name] + change, atol=1e-6)


def test_fewer_parameters_are_fewer_bytes(world: World) -> None:
    whole = sent_by(world)[0].bytes
    part = sent_by(world, devices=[Device(trainable="last:1")] * 8)[0].bytes
    assert (whole, part) == (4 * 131, 4 * 27)


def test_adapters_come_back_as_changes_of_weights_of_their_rank(world: World) -> None:
    devices = [Device(trainable="lora:2")] * 8
    for update in sent_by(world, devices=devices, local_epochs=3).values():
        assert np.linalg.matrix_rank(update.arrays["w1"], tol=1e-5) == 2


def test_what_a_device_learns_does_not_hang_on_its_neighbours(world: World) -> None:
    """Learners are shared by devices that train the same, adapters included."""
    for part in ("all", "lora:2", "last:1"):
        alone = World(world.model, world.partitions[:1], world.test)
        one = sent_by(alone, devices=[Device(trainable=part)])
        many = sent_by(world, devices=[Device(trainable=part)] * 8)
        assert len(many) == 8
        for name, array in one[0].arrays.items():
            np.testing.assert_array_equal(array, many[0].arrays[name])


def test_controls_of_devices_that_train_parts(world: World) -> None:
    """SCAFFOLD, one step each: every control is minus the gradient of its device."""
    parts = ["all", "last:1"] * 4
    seen = []
    for rounds in (1, 2):
        history = world.run(
            rounds=rounds,
            clients_per_round=8,
            batch_size=64,
            strategy="scaffold",
            devices=[Device(trainable=part) for part in parts],
        )
        seen.append(history.model.parameters())
    start, (first, second) = world.model.parameters(), seen
    # The control of all is the sum over senders of their gradients, over eight.
    counts = {name: 8 if name in LAST else 4 for name in start}
    grads: dict[str, list[np.ndarray]] = {name: [] for name in start}
    again: dict[str, list[np.ndarray]] = {name: [] for name in start}
    for index, part in enumerate(parts):
        x, y = world.partitions[index]
        for begin, into in ((start, grads), (first, again)):
            trainer = Trainer(world.model, "cross_entropy", optimizers.SGD(0.1), part)
            trainer.set_parameters(begin)
            trainer.step(x, y)
            for name in trainer.trained:
                into[name].append((begin[name] - trainer.parameters()[name]) / 0.1)
    sizes = [len(y) for _, y in world.partitions]
    for name, own in grads.items():
        senders = [i for i in range(8) if parts[i] == "all" or name in LAST]
        assert len(own) == counts[name]
        common = np.sum(own, axis=0) / 8
        steps = [-0.1 * (g + common - c) for g, c in zip(again[name], own, strict=True)]
        weights = [sizes[i] for i in senders]
        want = first[name] + np.average(steps, axis=0, weights=weights)
        np.testing.assert_allclose(second[name], want, atol=2e-6)


def test_a_device_that_trains_nothing_that_is_shared_is_refused(world: World) -> None:
    devices = [Device(trainable="last:1")] * 8
    with pytest.raises(ew.ConfigError, match="none of that is shared"):
        world.run(devices=devices, personal="last:1")


@pytest.mark.parametrize("other", [{"strategy": "krum"}, {"secure_aggregation": True}])
def test_what_compares_or_hides_whole_updates_wants_whole_ones(
    world: World, other: dict[str, object]
) -> None:
    devices = [Device(trainable=part) for part in TRAINABLE]
    with pytest.raises(ew.ConfigError, match="devices that train the same"):
        world.run(devices=devices, clients_per_round=8, **other)


def test_parameters_that_nobody_sent_stay() -> None:
    layout = Layout({"a": (2,), "b": (1,), "c": (2,)})
    updates = [
        Update({"a": np.array([1.0, 2.0])}, 1, 0.0),
        Update({"a": np.array([3.0, 0.0]), "c": np.array([5.0, 6.0])}, 3, 0.0),
    ]
    change = joined(mean, layout, updates)
    np.testing.assert_array_equal(change, [2.5, 0.5, 0.0, 5.0, 6.0])
    change = joined(median, layout, updates)
    np.testing.assert_array_equal(change, [2.0, 1.0, 0.0, 5.0, 6.0])


@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from("abcd"), min_size=1), st.integers(1, 99)),
        min_size=1,
        max_size=7,
    ),
    st.integers(0, 2**32 - 1),
)
def test_whoever_sends_what_the_means_are_those_of_numpy(
    sends: list[tuple[set[str], int]], seed: int
) -> None:
    draw = np.random.default_rng(seed)
    shapes = {"a": (2, 3), "b": (1,), "c": (0,), "d": (4,)}
    updates = [
        Update({n: draw.normal(size=shapes[n]) for n in sorted(names)}, count, 0.0)
        for names, count in sends
    ]
    layout = Layout(shapes)
    found = layout.named(joined(mean, layout, updates))
    for name, shape in shapes.items():
        own = [update for update in updates if name in update.arrays]
        want = np.zeros(shape)
        if own:
            weights = [update.examples for update in own]
            rows = [update.arrays[name] for update in own]
            want = np.average(rows, axis=0, weights=weights)
        np.testing.assert_allclose(found[name], want, atol=1e-12)


def test_slow_devices_are_asked_for_what_they_have_the_time_for(world: World) -> None:
    """A second of a device of speed 1 is a thousand examples."""
    speeds = [1.0, 0.1, 0.05, 0.01]
    config = FederatedConfig(
        local_epochs=4,
        deadline_s=1.0,
        devices=[Device(speed=speed) for speed in speeds],
    )
    fleet = fleet_of(world, config, world.partitions[:4])
    assert {fleet.member(i).examples for i in range(4)} == {30}
    assert [passes(fleet.member(i), 1.0) for i in range(4)] == [4, 3, 1, 0]
    assert chosen(config, fleet, 1) == [0, 1, 2]


def test_partial_work_ends_in_time(world: World) -> None:
    speeds = [1.0, 0.5, 0.2, 0.1, 0.06, 0.05, 0.04, 0.03]
    devices = [Device(speed=speed) for speed in speeds]
    history = world.run(
        devices=devices, deadline_s=1.0, local_epochs=5, clients_per_round=8, rounds=2
    )
    assert [one.clients for one in history.rounds] == [7, 7]
    assert [one.failures for one in history.rounds] == [0, 0]
    assert all(0.5 < one.waited <= 0.9 for one in history.rounds)


def test_nobody_with_the_time_is_an_error_that_says_so(world: World) -> None:
    devices = [Device(speed=1e-3)] * 8
    with pytest.raises(ew.FederatedError, match=r"within deadline_s=1\b"):
        world.run(devices=devices, deadline_s=1.0)


def test_devices_of_which_nothing_is_said_are_never_late(world: World) -> None:
    history = world.run(deadline_s=1e-9)
    assert all(one.failures == 0 for one in history.rounds)


def test_those_seldom_there_are_asked_less_often_and_may_not_answer(
    world: World,
) -> None:
    shares = [1.0] * 4 + [0.25] * 4
    devices = [Device(available=share) for share in shares]
    config = FederatedConfig(clients_per_round=2, devices=devices)
    fleet = fleet_of(world, config)
    asked = np.zeros(8)
    for number in range(1, 401):
        asked[chosen(config, fleet, number)] += 1
    assert asked[:4].min() > 2 * asked[4:].max()
    assert asked[4:].min() > 0
    settings = {"devices": [Device(available=0.5)] * 8, "quorum": 0.0}
    history = world.run(rounds=8, clients_per_round=8, **settings)
    assert 16 < sum(one.failures for one in history.rounds) < 48


def test_under_privacy_slow_devices_are_not_asked(world: World) -> None:
    """Each by its own chance, which for some is none: the promise holds for all."""
    devices = [Device()] * 4 + [Device(speed=1e-3)] * 4
    privacy = Privacy(clip=1.0, noise_multiplier=1.0)
    config = FederatedConfig(
        clients_per_round=8, devices=devices, privacy=privacy, deadline_s=1.0
    )
    assert chosen(config, fleet_of(world, config), 1) == [0, 1, 2, 3]


def test_no_update_counts_for_more_than_privacy_allows(world: World) -> None:
    """Neither by what a codec owed, nor by what is done to it on its way."""

    def grow(number: int, client: int, update: Update) -> Update:
        del number, client
        big = {name: array * np.float32(1e4) for name, array in update.arrays.items()}
        return update.replace(arrays=big)

    privacy = Privacy(clip=0.5, noise_multiplier=1e-6)
    layout = layout_of(world)
    for settings in ({"codec": "topk:0.05"}, {"codec": "float32", "hook": grow}):
        run = {"clients_per_round": 8, "privacy": privacy, "local_epochs": 5}
        ends = [
            world.run(rounds=rounds, **run, **settings).model.parameters()
            for rounds in (1, 2, 3)
        ]
        for before, after in itertools.pairwise([world.model.parameters(), *ends]):
            moved = layout.flat(after) - layout.flat(before)
            assert np.linalg.norm(moved) < 0.5 * 1.001


@pytest.mark.parametrize(
    "wrong",
    [
        {"speed": 0.0},
        {"speed": float("inf")},
        {"speed": float("nan")},
        {"available": 1.5},
        {"available": float("nan")},
        {"local_epochs": 0},
        {"local_epochs": 1.5},
    ],
)
def test_what_no_device_is(wrong: dict[str, object]) -> None:
    with pytest.raises(ew.ConfigError):
        Device(**wrong)  # type: ignore[arg-type]
