"""Flower's strategy objects in our loop: each learns, goes on, and harms nobody."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message
from flwr.serverapp import Grid
from flwr.serverapp import strategy as flower
from tests.federated.conftest import World

import edgewise as ew
from edgewise_federated import Device, FederatedConfig, FederatedHistory, Privacy

FEW = {"min_train_nodes": 4, "min_available_nodes": 4, "fraction_train": 0.5}
ALL = {"min_train_nodes": 8, "min_available_nodes": 8, "fraction_train": 1.0}
MAKERS: dict[str, Callable[[], flower.Strategy]] = {
    "FedAvg": lambda: flower.FedAvg(**FEW),
    "FedAvgM": lambda: flower.FedAvgM(server_momentum=0.5, **FEW),
    "FedAdagrad": lambda: flower.FedAdagrad(eta=0.1, **FEW),
    "FedAdam": lambda: flower.FedAdam(eta=0.1, **FEW),
    "FedYogi": lambda: flower.FedYogi(eta=0.1, **FEW),
    "FedProx": lambda: flower.FedProx(proximal_mu=0.5, **FEW),
    "FedMedian": lambda: flower.FedMedian(**FEW),
    "FedTrimmedAvg": lambda: flower.FedTrimmedAvg(**FEW),
    "Krum": lambda: flower.Krum(num_malicious_nodes=1, **FEW),
    "MultiKrum": lambda: flower.MultiKrum(
        num_malicious_nodes=1, num_nodes_to_select=3, **FEW
    ),
    "Bulyan": lambda: flower.Bulyan(num_malicious_nodes=0, **FEW),
    "QFedAvg": lambda: flower.QFedAvg(client_learning_rate=0.1, **FEW),
    "FedXgbCyclic": lambda: flower.FedXgbCyclic(min_available_nodes=4),
    "ServerSideFixed": lambda: flower.DifferentialPrivacyServerSideFixedClipping(
        flower.FedAvg(**FEW), 0.01, 1.0, 4
    ),
    "ServerSideAdaptive": lambda: flower.DifferentialPrivacyServerSideAdaptiveClipping(
        flower.FedAvg(**FEW), 0.01, 4
    ),
}
REFUSED: dict[str, tuple[Callable[[], flower.Strategy], str]] = {
    "FedXgbBagging": (lambda: flower.FedXgbBagging(**FEW), "exactly one Array"),
    "ClientSideFixed": (
        lambda: flower.DifferentialPrivacyClientSideFixedClipping(
            flower.FedAvg(**FEW), 0.01, 1.0, 4
        ),
        "ClientSideFixedClipping asks devices for clipping_norm",
    ),
    "ClientSideAdaptive": (
        lambda: flower.DifferentialPrivacyClientSideAdaptiveClipping(
            flower.FedAvg(**FEW), 0.01, 4
        ),
        "ClientSideAdaptiveClipping asks devices for clipping_norm",
    ),
}


def numbers(history: FederatedHistory) -> list[tuple[float, ...]]:
    """Rounds without what a clock says."""
    return [tuple(one[:7]) for one in history.rounds]


def test_all_that_flower_has_is_tried() -> None:
    kinds = {type(make()) for make in MAKERS.values()}
    kinds |= {type(make()) for make, _ in REFUSED.values()}
    names = set(flower.__all__) - {"Strategy", "Result"}
    assert kinds == {getattr(flower, name) for name in names}


@pytest.mark.parametrize("name", MAKERS)
def test_every_strategy_learns(world: World, name: str) -> None:
    history = world.run(strategy=MAKERS[name](), rounds=6, local_epochs=3)
    assert len(history.rounds) == 6
    assert history.rounds[0].clients == (1 if name == "FedXgbCyclic" else 4)
    assert history.rounds[-1].loss < history.rounds[0].loss


@pytest.mark.parametrize("name", REFUSED)
def test_what_devices_cannot_do_is_refused_by_name(world: World, name: str) -> None:
    make, text = REFUSED[name]
    with pytest.raises(ew.FederatedError, match=text):
        world.run(strategy=make())


def test_the_mean_of_flower_is_ours(world: World) -> None:
    ours = world.run(clients_per_round=8)
    theirs = world.run(strategy=flower.FedAvg(**ALL))
    for a, b in zip(ours.rounds, theirs.rounds, strict=True):
        assert abs(a.loss - b.loss) < 1e-5
        assert a[5:7] == b[5:7]  # bytes


def test_the_proximal_term_of_flower_is_ours(world: World) -> None:
    ours = world.run(
        strategy="fedprox", options={"mu": 2.0}, clients_per_round=8, local_epochs=3
    )
    theirs = world.run(strategy=flower.FedProx(proximal_mu=2.0, **ALL), local_epochs=3)
    plain = world.run(clients_per_round=8, local_epochs=3)
    assert abs(ours.rounds[-1].loss - theirs.rounds[-1].loss) < 1e-5
    assert abs(ours.rounds[-1].loss - plain.rounds[-1].loss) > 1e-3


@pytest.mark.parametrize("name", MAKERS)
def test_a_killed_run_goes_on_to_the_bit(
    world: World, name: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"codec": "int8", "personal": "last:1"}
    whole = world.run(strategy=MAKERS[name](), rounds=4, **settings)
    state = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    settings["checkpoint_dir"] = str(tmp_path)
    world.run(strategy=MAKERS[name](), rounds=2, **settings)
    random.seed(7)  # what others draw decides nothing
    again = world.run(strategy=MAKERS[name](), rounds=4, **settings)
    assert numbers(whole) == numbers(again)
    for key, value in whole.model.parameters().items():
        np.testing.assert_array_equal(again.model.parameters()[key], value)
    random.setstate(state[0])
    assert np.random.get_state()[1].tolist() == state[1]  # noqa: NPY002


def test_a_run_goes_on_with_a_strategy_of_its_kind_alone(
    world: World, tmp_path: Path
) -> None:
    folder = str(tmp_path)
    world.run(strategy=MAKERS["FedAvgM"](), checkpoint_dir=folder, rounds=1)
    other = flower.FedAvgM(server_momentum=0.9, **FEW)
    for strategy in (other, MAKERS["FedAdam"](), "fedavgm"):
        with pytest.raises(ew.CheckpointError, match="run of another kind"):
            world.run(strategy=strategy, checkpoint_dir=folder)


def test_bad_replies_never_reach_a_strategy(world: World) -> None:
    """In Flower an extra key ends the run, and a NaN is in the model for good."""
    seen: list[tuple[int, int]] = []

    class Looking(flower.FedAvg):
        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            replies = list(replies)
            failed = [reply for reply in replies if reply.has_error()]
            seen.append((len(replies), len(failed)))
            return super().aggregate_train(server_round, replies)

    def hook(number: int, client: int, update: Any) -> Any:
        arrays = dict(update.arrays)
        if client % 4 == 1:
            arrays["b1"] = arrays["b1"] * np.float32("nan")
        elif client % 4 == 2:
            arrays["intruder"] = np.zeros(3, np.float32)
        elif client == 3:
            raise RuntimeError("battery")
        return update.replace(arrays=arrays)

    history = world.run(hook, strategy=Looking(**ALL), quorum=0.25)
    assert seen == [(8, 5)] * 3
    assert [one.failures for one in history.rounds] == [5] * 3
    assert all(np.isfinite(one.loss) for one in history.rounds)


def test_too_few_devices_are_an_error_and_no_endless_wait(world: World) -> None:
    with pytest.raises(ew.FederatedError, match="8 devices are there"):
        world.run(strategy=flower.FedAvg(min_available_nodes=9))


def test_a_strategy_that_was_in_a_run_is_refused_if_it_remembers(world: World) -> None:
    plain, momentum = MAKERS["FedAvg"](), MAKERS["FedAvgM"]()
    first, second = (world.run(strategy=plain, rounds=1) for _ in range(2))
    assert numbers(first) == numbers(second)
    world.run(strategy=momentum, rounds=1)
    with pytest.raises(ew.ConfigError, match="FedAvgM was in a run before"):
        world.run(strategy=momentum, rounds=1)


class Drawing(flower.FedAvg):
    """Keeps generators, and what they gave, in every kind of container."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.draw = np.random.default_rng(5)
        self.other = random.Random(5)  # noqa: S311 - what users take
        self.log: list[Any] = []
        self.latest: dict[int, Any] = {}
        self.record = ConfigRecord({"begun": b"yes", "list": [1, 2]})

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        number = self.draw.random() + self.other.random()
        self.log.append((server_round, number, np.float32(number)))
        self.latest = {server_round: {"arrays": arrays, "at": None, "b": b"\x00\xff"}}
        return super().configure_train(server_round, arrays, config, grid)


def test_what_a_strategy_of_ones_own_remembers_is_kept(
    world: World, tmp_path: Path
) -> None:
    whole, first, again = (Drawing(**FEW) for _ in range(3))
    world.run(strategy=whole, rounds=4)
    world.run(strategy=first, rounds=2, checkpoint_dir=str(tmp_path))
    world.run(strategy=again, rounds=4, checkpoint_dir=str(tmp_path))
    assert again.log == whole.log
    assert isinstance(again.log[0], tuple)
    assert again.latest[4]["arrays"] == whole.latest[4]["arrays"]
    assert again.record == whole.record


def test_what_cannot_be_kept_is_refused_by_name_where_it_has_to_be(
    world: World, tmp_path: Path
) -> None:
    def strategy() -> flower.FedAvg:
        made = flower.FedAvg(**FEW)
        made.outside = object()  # type: ignore[attr-defined]
        return made

    world.run(strategy=strategy(), rounds=1)
    with pytest.raises(ew.CheckpointError, match=r"FedAvg\.outside: got a object"):
        world.run(strategy=strategy(), checkpoint_dir=str(tmp_path))
    assert not list(tmp_path.iterdir())


class Sending(flower.FedAvg):
    """Asks nodes by itself."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        grid.send_and_receive([])
        return []


class Changing(flower.FedAvg):
    """Sends another model than that of all."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        other = ArrayRecord([2 * a for a in arrays.to_numpy_ndarrays()])
        renamed = ArrayRecord(dict(zip(arrays, other.values(), strict=True)))
        return super().configure_train(server_round, renamed, config, grid)


class Wrong(flower.FedAvg):
    """Gives what is no model."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        arrays, metrics = super().aggregate_train(server_round, replies)
        assert arrays is not None
        del arrays["b1"]
        return arrays, metrics


class Nothing(flower.FedAvg):
    """Takes no update."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        return None, None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Sending, "sends messages by itself"),
        (Changing, "Changing sends a device another model"),
        (Wrong, "Wrong gave no such model: .*b1"),
    ],
)
def test_what_the_loop_does_not_do_is_refused(
    world: World, kind: type[flower.FedAvg], text: str
) -> None:
    with pytest.raises(ew.FederatedError, match=text):
        world.run(strategy=kind(**FEW))


def test_a_strategy_that_takes_nothing_keeps_the_model(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        history = world.run(strategy=Nothing(**FEW), rounds=2)
    for name, value in world.model.parameters().items():
        np.testing.assert_array_equal(history.model.parameters()[name], value)
    assert "round 1: Nothing took no update" in caplog.text


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"secure_aggregation": True}, "secure_aggregation with strategy=FedAvg"),
        ({"options": {"server_lr": 1.0}}, "options: those of FedAvg"),
        ({"privacy": Privacy(1.0, 1.0)}, "privacy with FedAvg"),
        ({"mode": "buffered"}, "mode='buffered' with strategy=FedAvg"),
        ({"devices": [Device(trainable="last:1")]}, "strategy=FedAvg with devices"),
    ],
)
def test_settings_that_an_object_decides_are_refused(
    settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ew.ConfigError, match=text):
        FederatedConfig(strategy=flower.FedAvg(), **settings)


def test_what_is_no_strategy_is_refused(world: World) -> None:
    with pytest.raises(ew.ConfigError, match=r"flwr\.serverapp\.strategy"):
        FederatedConfig(strategy=object())  # type: ignore[arg-type]

    class Alike:
        def configure_train(self, *args: Any) -> list[Any]:
            return []

        def aggregate_train(self, *args: Any) -> tuple[None, None]:
            return None, None

    with pytest.raises(ew.ConfigError, match=r"not of flwr\.server\.strategy"):
        world.run(strategy=Alike())
