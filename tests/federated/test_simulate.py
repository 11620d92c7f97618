"""Runs over devices: what they learn, what fails, what stays, and how they go on."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from tests.federated.conftest import World

import edgewise as ew
from edgewise_federated import (
    Device,
    FederatedConfig,
    FederatedHistory,
    Privacy,
    Update,
    simulate,
)
from edgewise_federated.client import Client, Work
from edgewise_federated.config import STRATEGIES
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer, optimizers


def numbers(history: FederatedHistory) -> list[tuple[float, ...]]:
    """Rounds without what a clock says."""
    return [(*one[:7], one.epsilon or 0.0) for one in history.rounds]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_learns(world: World, strategy: str) -> None:
    history = world.run(strategy=strategy, rounds=12, local_epochs=3)
    first, last = history.rounds[0], history.rounds[-1]
    assert last.loss < first.loss
    assert last.accuracy is not None
    assert last.accuracy > 0.7


def test_the_mean_of_devices_that_all_answer_is_one_large_step(world: World) -> None:
    """One pass of one whole batch each: federated descent is plain descent."""
    size = max(len(y) for _, y in world.partitions)
    settings = {"clients_per_round": 8, "batch_size": size, "rounds": 2}
    history = world.run(**settings)
    trainer = Trainer(world.model, "cross_entropy", optimizers.SGD(0.1))
    x, y = (np.concatenate([p[i] for p in world.partitions]) for i in (0, 1))
    for _ in range(2):
        trainer.step(x, y)
    for name, value in history.model.parameters().items():
        np.testing.assert_allclose(value, trainer.parameters()[name], atol=2e-6)


def test_what_is_proximal_moves_less(world: World) -> None:
    away = []
    for strategy, options in (("fedavg", None), ("fedprox", {"mu": 5.0})):
        history = world.run(
            strategy=strategy, options=options, rounds=1, local_epochs=5
        )
        moved = history.model.parameters()
        start = world.model.parameters()
        away.append(sum(float(np.square(moved[k] - start[k]).sum()) for k in start))
    assert away[1] < 0.8 * away[0]


def fault(kind: str) -> object:
    def hook(number: int, client: int, update: Update) -> Update | None:
        del number
        arrays = dict(update.arrays)
        if client % 4 != 1:
            return update
        if kind == "vanish":
            return None
        if kind == "raise":
            raise RuntimeError("battery")
        if kind == "nan":
            arrays["b1"] = np.full_like(arrays["b1"], np.nan)
        elif kind == "shape":
            arrays["b1"] = arrays["b1"][:-1]
        elif kind == "extra":
            arrays["intruder"] = np.zeros(3, np.float32)
        else:
            arrays["b1"] = arrays["b1"] + np.float32(1e6)
        return update.replace(arrays=arrays)

    return hook


@pytest.mark.parametrize("kind", ["vanish", "raise", "nan", "shape", "extra", "huge"])
def test_what_devices_do_wrong_is_counted_and_harms_nobody(
    world: World, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        history = world.run(fault(kind), rounds=6, quorum=0.25, max_norm=1e3)
    assert 0 < sum(one.failures for one in history.rounds) < 24
    assert all(np.isfinite(one.loss) and one.loss < 3 for one in history.rounds)
    assert (kind == "vanish") == ("device" not in caplog.text)


def test_too_few_answers_are_an_error(world: World) -> None:
    with pytest.raises(ew.FederatedError, match=r"round 1: 0 of 4 .* want 2"):
        world.run(lambda *_: None)


def test_what_is_personal_stays(world: World) -> None:
    seen: set[str] = set()

    def look(number: int, client: int, update: Update) -> Update:
        del number, client
        seen.update(update.arrays)
        return update

    history = world.run(look, personal="last:1")
    assert seen == {"w1", "b1"}
    start, end = world.model.parameters(), history.model.parameters()
    np.testing.assert_array_equal(end["w2"], start["w2"])
    assert (end["w1"] != start["w1"]).any()
    with pytest.raises(ew.ConfigError, match="nothing is left"):
        world.run(personal="all")


def test_devices_have_models_of_their_own(world: World) -> None:
    """The body is that of all; a head is what its device alone would learn on it."""
    history = world.run(personal="last:1", clients_per_round=3, rounds=1)
    asked = [index for index, own in enumerate(history.own) if own]
    assert len(asked) == 3
    start, shared = world.model.parameters(), history.model.parameters()
    for index in range(8):
        mine = history.model_of(index).parameters()
        np.testing.assert_array_equal(mine["w1"], shared["w1"])
        assert (mine["w2"] == start["w2"]).all() == (index not in asked)
    heads = [history.model_of(index).parameters()["w2"] for index in asked]
    assert not np.array_equal(heads[0], heads[1])
    with ew.Session(history.model_of(asked[0])) as session:
        assert session(world.test[0]).shape == (120, 3)
    with pytest.raises(ew.ConfigError, match="want 0 to 7"):
        history.model_of(8)


def test_a_device_begins_without_what_the_one_before_it_had(world: World) -> None:
    """One learner serves all in turn: nothing of a device may reach the next."""
    start = world.model.parameters()
    layout = Layout({name: start[name].shape for name in ("w1", "b1")})
    values, work = layout.flat(start), Work(2, 10, None, (0,))
    heads = []
    for before in ([], [world.partitions[0]]):
        client = Client(
            world.model, "cross_entropy", optimizers.SGD(0.1), personal=("w2", "b2")
        )
        for data in (*before, world.partitions[1]):
            learned = client.learn(values, layout, data, work, {}, None)
        heads.append(learned.personal)
    for name, value in heads[0].items():
        np.testing.assert_array_equal(heads[1][name], value)


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "scaffold", "codec": "int8"},
        {"strategy": "fedadam", "personal": "last:1"},
        {"strategy": "fedavgm", "codec": "topk:0.1"},
        {"privacy": Privacy(clip=1.0, noise_multiplier=1.0)},
    ],
)
def test_a_killed_run_goes_on_to_the_bit(
    world: World, tmp_path: Path, settings: dict[str, object]
) -> None:
    whole = world.run(rounds=6, **settings)

    def die(number: int, client: int, update: Update) -> Update:
        del client
        if number == 4:
            raise KeyboardInterrupt
        return update

    folder = str(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        world.run(die, rounds=6, checkpoint_dir=folder, **settings)
    again = world.run(rounds=6, checkpoint_dir=folder, **settings)
    assert numbers(again) == numbers(whole)
    for name, value in whole.model.parameters().items():
        np.testing.assert_array_equal(again.model.parameters()[name], value)


def test_a_run_of_another_kind_does_not_go_on(world: World, tmp_path: Path) -> None:
    world.run(checkpoint_dir=str(tmp_path))
    with pytest.raises(ew.CheckpointError, match="another kind"):
        world.run(checkpoint_dir=str(tmp_path), batch_size=7)
    privacy = Privacy(clip=1.0, noise_multiplier=1.0)
    with pytest.raises(ew.CheckpointError, match="another kind"):
        world.run(checkpoint_dir=str(tmp_path), privacy=privacy)
    assert len(world.run(checkpoint_dir=str(tmp_path), rounds=4).rounds) == 4


@pytest.mark.parametrize("cut", [0, 10, 400])
def test_a_damaged_run_is_said(world: World, tmp_path: Path, cut: int) -> None:
    world.run(checkpoint_dir=str(tmp_path))
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:cut])
    with pytest.raises(ew.CheckpointError, match="damaged"):
        world.run(checkpoint_dir=str(tmp_path))


def test_privacy_draws_by_chance_and_is_accounted(world: World) -> None:
    privacy = Privacy(clip=0.5, noise_multiplier=1.5)
    history = world.run(rounds=20, clients_per_round=1, privacy=privacy)
    sizes = [one.clients for one in history.rounds]
    assert min(sizes) == 0
    assert max(sizes) > 1
    spent = [one.epsilon for one in history.rounds]
    assert all(a < b for a, b in itertools.pairwise(spent))


def test_devices_differ(world: World) -> None:
    devices = [Device(trainable="last:1", local_epochs=2)] * 4 + [
        Device(available=0.0)
    ] * 4
    history = world.run(devices=devices, rounds=4)
    assert {one.clients for one in history.rounds} == {4}
    start, end = world.model.parameters(), history.model.parameters()
    np.testing.assert_array_equal(end["w1"], start["w1"])
    assert (end["w2"] != start["w2"]).any()


def test_the_same_seed_gives_the_same_run(world: World) -> None:
    runs = [numbers(world.run(codec="int4", seed=seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_histories_are_written_and_drawn(world: World, tmp_path: Path) -> None:
    history = world.run()
    rows = json.loads(history.to_json(tmp_path / "h.json"))
    assert rows == json.loads((tmp_path / "h.json").read_text())
    assert [row["number"] for row in rows] == [1, 2, 3]
    history.plot(tmp_path / "h.svg")
    assert (tmp_path / "h.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"strategy": "best"},
        {"quorum": 2.0},
        {"clients_per_round": 1.5},
        {"codec": "int2"},
        {"options": {"speed": 1.0}},
        {"devices": [Device()]},
        {"personal": "nothing*"},
        {"seed": -1},
        {"seed": 0.5},
        {"max_norm": 0.0},
        {"max_norm": float("nan")},
        {"deadline_s": float("inf")},
        {"devices": ["fast"] * 8},
        {"privacy": 1.0},
        {"options": {"server_lr": float("nan")}},
        {"rounds": True},
    ],
)
def test_what_cannot_be_meant_is_refused(
    world: World, wrong: dict[str, object]
) -> None:
    with pytest.raises(ew.ConfigError):
        world.run(**wrong)


def test_nobody_to_ask(world: World) -> None:
    with pytest.raises(ew.ConfigError, match="no partitions"):
        simulate(world.model, [], FederatedConfig())
    x, y = world.partitions[0]
    with pytest.raises(ew.ConfigError, match="partition 1: got 30 inputs and 29"):
        simulate(world.model, [(x, y), (x, y[1:])], FederatedConfig())
    with pytest.raises(ew.FederatedError, match="none has examples"):
        simulate(world.model, [(x[:0], y[:0])], FederatedConfig())


def test_devices_without_examples_are_left_alone(world: World) -> None:
    x, y = world.partitions[0]
    partitions = [*world.partitions[:3], (x[:0], y[:0])]
    history = simulate(world.model, partitions, FederatedConfig(rounds=2))
    assert [(one.clients, one.failures) for one in history.rounds] == [(3, 0)] * 2


def test_a_server_that_sees_sums_alone_learns_the_same(world: World) -> None:
    sent: list[np.ndarray] = []

    def wire(number: int, client: int, update: Update) -> Update | None:
        sent.extend(np.ravel(array) for array in update.arrays.values())
        return None if (number, client % 4) == (2, 1) else update

    def drop(number: int, client: int, update: Update) -> Update | None:
        return None if (number, client % 4) == (2, 1) else update

    settings = {"clients_per_round": 6, "rounds": 4}
    plain = world.run(drop, **settings)
    hidden = world.run(wire, secure_aggregation=True, **settings)
    for one, other in zip(plain.rounds, hidden.rounds, strict=True):
        assert one.failures == other.failures
        assert other.loss == pytest.approx(one.loss, abs=1e-5)
    words = np.concatenate(sent)
    assert words.dtype == np.uint32
    assert words.mean() / 2**32 == pytest.approx(0.5, abs=0.02)


def test_sums_may_be_private_too(world: World) -> None:
    privacy = Privacy(clip=0.5, noise_multiplier=0.01)
    settings = {"clients_per_round": 6, "rounds": 2, "privacy": privacy}
    plain = world.run(**settings)
    hidden = world.run(secure_aggregation=True, **settings)
    assert hidden.rounds[-1].loss == pytest.approx(plain.rounds[-1].loss, abs=1e-4)


@pytest.mark.parametrize(
    "other", [{"strategy": "krum"}, {"codec": "int8"}, {"max_norm": 1.0}]
)
def test_sums_do_not_go_with_what_sees_one(
    world: World, other: dict[str, object]
) -> None:
    with pytest.raises(ew.ConfigError, match="sees sums alone"):
        world.run(secure_aggregation=True, **other)


def test_sums_want_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewise_federated.config.find_spec", lambda name: None)
    with pytest.raises(ew.ConfigError, match="cryptography is not installed: pip"):
        FederatedConfig(secure_aggregation=True)


def test_sums_of_two_hide_nobody(world: World) -> None:
    with pytest.raises(ew.FederatedError, match="want 3 or more"):
        world.run(secure_aggregation=True, clients_per_round=2)


def test_too_few_to_take_the_masks_off(world: World) -> None:
    with pytest.raises(ew.FederatedError, match="of 4"):
        world.run(
            lambda _, client, update: update if client % 4 == 1 else None,
            secure_aggregation=True,
            quorum=0.1,
        )
