"""Rounds over Flower's messages: the numbers of a simulation, whatever devices do."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvgM
from tests.federated.conftest import World
from tests.federated.flower.conftest import Over, config_of

import edgewise as ew
from edgewise_federated import FederatedHistory, Privacy, client_app, server_app
from edgewise_federated.flower.loopback import Fault, Loopback
from edgewise_federated.flower.messages import ORDER
from edgewise_federated.flower.server import over
from edgewise_trainer import optimizers


def told(history: FederatedHistory) -> list[tuple[Any, ...]]:
    """Rounds without what a clock says."""
    return [tuple(one[:7]) for one in history.rounds]


SETTINGS: list[dict[str, Any]] = [
    {},
    {"codec": "int8", "local_epochs": 2},
    {"codec": "topk:0.1", "strategy": "fedprox", "personal": "last:1"},
    {"strategy": "scaffold", "personal": ["b2"]},
    {"strategy": "krum", "clients_per_round": 8, "codec": "float16"},
    {"privacy": Privacy(clip=1.0, noise_multiplier=1.0)},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_numbers_are_those_of_a_simulation(
    world: World, behind: Over, settings: dict[str, Any]
) -> None:
    simulated, real = world.run(**settings), behind(**settings)
    assert told(simulated) == told(real)
    for name, value in simulated.model.parameters().items():
        np.testing.assert_array_equal(real.model.parameters()[name], value)


def test_a_strategy_of_flower_over_messages(world: World, behind: Over) -> None:
    def strategy() -> FedAvgM:
        return FedAvgM(
            server_momentum=0.5,
            fraction_train=0.5,
            min_train_nodes=4,
            min_available_nodes=8,
        )

    simulated = world.run(strategy=strategy(), codec="int8")
    assert told(simulated) == told(behind(strategy=strategy(), codec="int8"))


def test_buffered_over_messages(behind: Over) -> None:
    history = behind(mode="buffered", rounds=6)
    assert len(history.rounds) == 6
    assert history.rounds[-1].loss < history.rounds[0].loss


@pytest.mark.parametrize("settings", SETTINGS[1:4])
def test_a_killed_server_goes_on_to_the_bit(
    world: World, behind: Over, settings: dict[str, Any], tmp_path: Path
) -> None:
    """It died in round 3: devices have answered an order that comes again."""
    whole = world.run(rounds=4, **settings)
    kept = {"checkpoint_dir": str(tmp_path / "run"), "rounds": 4}

    class Killed(BaseException):
        pass

    answered: list[int] = []

    def die(request: Message, reply: Message) -> Message:
        order = request.content.config_records.get("order", {})
        if order.get("number") == 3:
            answered.append(1)
            if len(answered) > 2:
                return Message(Error(0, "gone"), reply_to=request)
        return reply

    with pytest.raises(ew.FederatedError, match="2 of 4"):
        behind(die, quorum=1.0, **settings, **kept)
    assert told(behind(**settings, **kept)) == told(whole)


def spoiled(kind: str, content: RecordDict) -> RecordDict:
    """A reply with something wrong in it."""
    change = content.array_records["arrays"]["change"]
    raw = np.frombuffer(change.data, "<f4").copy()
    raw[3] = np.nan if kind == "nan" else raw[3]
    data = raw.tobytes()[: -4 if kind == "short" else None]
    stypes = {"codec": "edgewise.int7", "pickle": "cloudpickle"}
    shape = (2**40,) if kind == "shape" else change.shape
    array = Array("float32", shape, stypes.get(kind, change.stype), data)
    wrong: dict[str, dict[str, Any]] = {
        "number": {"number": 99},
        "weight": {"num-examples": 2**40},
        "loss": {"loss": float("nan")},
    }
    metrics = dict(content.metric_records["metrics"]) | wrong.get(kind, {})
    arrays = {} if kind == "empty" else {"change": array}
    return RecordDict({"arrays": ArrayRecord(arrays), "metrics": MetricRecord(metrics)})


def harmed(kind: str) -> Fault:
    """What becomes of the replies of every fourth node."""

    def fault(request: Message, reply: Message) -> Message | None:
        if request.metadata.message_type != ORDER:
            return reply
        if request.metadata.dst_node_id % 4 != 2:
            return reply
        if kind == "raise":
            raise RuntimeError("battery")
        if kind == "vanish":
            return None
        return Message(spoiled(kind, reply.content), reply_to=request)

    return fault


@pytest.mark.parametrize(
    "kind",
    [
        *("vanish", "raise", "nan", "shape", "short", "codec", "pickle"),
        *("empty", "number", "weight", "loss"),
    ],
)
def test_what_devices_send_wrong_is_counted_and_harms_nobody(
    behind: Over, kind: str
) -> None:
    deadline = 1.0 if kind == "vanish" else 60.0
    history = behind(
        harmed(kind), quorum=0.25, clients_per_round=8, rounds=2, deadline_s=deadline
    )
    assert [one.failures for one in history.rounds] == [2, 2]
    assert history.rounds[-1].loss < history.rounds[0].loss


def test_a_reply_that_hangs_holds_nobody_beyond_the_deadline(behind: Over) -> None:
    free = threading.Event()

    def hang(request: Message, reply: Message) -> Message:
        if request.metadata.message_type == ORDER:
            free.wait(30.0)
        return reply

    start = time.monotonic()
    try:
        with pytest.raises(ew.FederatedError, match=r"0 of 4 devices .* want 2"):
            behind(hang, deadline_s=0.5)
    finally:
        free.set()
    assert time.monotonic() - start < 20.0  # and not the 30 of the reply


def test_a_pull_that_hangs_holds_nobody_either(
    world: World, behind: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flower's pull waits for what a dead device has begun to upload."""
    free, pull, held = threading.Event(), Loopback.pull_messages, set[str]()

    def pulled(grid: Loopback, names: Any) -> Any:
        for reply in (found := list(pull(grid, names))):
            kind, node = reply.metadata.message_type, reply.metadata.src_node_id
            if kind == ORDER and node % 4 == 2:
                held.add(reply.metadata.reply_to_message_id)
                free.wait(30.0)
        return found

    monkeypatch.setattr(Loopback, "pull_messages", pulled)
    try:
        history = behind(rounds=2, clients_per_round=8, quorum=0.5, deadline_s=2.0)
    finally:
        free.set()
    assert [one.failures for one in history.rounds] == [2, 2]
    assert len(held) >= 2


def test_nobody_there_is_an_error_and_no_endless_wait(world: World) -> None:
    app = client_app(world.model, lambda node: world.partitions[node])
    grid = Loopback(app, 0)
    with pytest.raises(ew.FederatedError, match=r"0 nodes are there after 0\.2 s"):
        over(grid, world.model, config_of(deadline_s=0.2))
    grid.close()


def test_a_quorum_begins_when_the_wait_for_all_is_over(
    behind: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look for nodes gets no answer: its time is over before it is asked."""
    nodes = Loopback.get_node_ids

    def slowly(grid: Loopback) -> Any:
        time.sleep(0.05)
        return nodes(grid)

    monkeypatch.setattr(Loopback, "get_node_ids", slowly)
    history = behind(rounds=2, clients_per_round=12, quorum=0.5, deadline_s=1.0)
    assert [one.clients for one in history.rounds] == [8, 8]


def test_a_node_with_another_model_is_left_out(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = config_of(personal="last:1")
    app = client_app(
        world.model,
        lambda node: world.partitions[node],
        config,
        state_dir=tmp_path,
    )
    grid = Loopback(app, 4)
    with pytest.raises(ew.FederatedError, match="0 nodes are there"):
        over(grid, world.model, config_of(deadline_s=1.0))
    grid.close()
    assert "another model, or shares another part" in caplog.text


def test_the_server_app_is_the_loop(world: World, tmp_path: Path) -> None:
    config = config_of(local_epochs=2)
    app = client_app(
        world.model,
        lambda node: world.partitions[node],
        config,
        optimizer=optimizers.SGD(0.1),
        state_dir=tmp_path,
    )
    grid, seen, ends = Loopback(app, 8), list[int](), list[FederatedHistory]()
    server = server_app(
        world.model,
        config,
        world.test,
        callbacks=[lambda one: seen.append(one.number)],
        done=ends.append,
    )
    context = grid.context(1)
    context.run_config = {"rounds": 2, "others": "word"}
    server(grid, context)
    grid.close()
    assert seen == [1, 2]
    assert told(ends[0]) == told(world.run(rounds=2, local_epochs=2))


def test_what_flower_says_of_a_run_is_checked(world: World) -> None:
    server = server_app(world.model)
    grid = Loopback(client_app(world.model, lambda node: world.partitions[node]), 1)
    context = grid.context(1)
    context.run_config = {"rounds": 0}
    with pytest.raises(ew.ConfigError, match="rounds=0"):
        server(grid, context)
    grid.close()
