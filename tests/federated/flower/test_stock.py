"""Servers of Flower's that know nothing of ours: their strategies run by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import strategy as flower
from tests.federated.conftest import World
from tests.federated.flower.conftest import config_of

import edgewise as ew
from edgewise_federated import Privacy, client_app
from edgewise_federated.flower.loopback import Loopback
from edgewise_federated.flower.messages import ORDER, order_content
from edgewise_federated.flower.stock import arrays_of
from edgewise_federated.order import Order
from edgewise_federated.resident import Told
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer, optimizers

ALL = {"min_train_nodes": 8, "min_evaluate_nodes": 8, "min_available_nodes": 8}
STRATEGIES: dict[str, flower.Strategy] = {
    "FedAvg": flower.FedAvg(**ALL),
    "FedProx": flower.FedProx(proximal_mu=0.5, **ALL),
    "FedAdam": flower.FedAdam(eta=0.05, **ALL),
    "FedMedian": flower.FedMedian(**ALL),
    "MultiKrum": flower.MultiKrum(num_malicious_nodes=1, num_nodes_to_select=6, **ALL),
    "QFedAvg": flower.QFedAvg(client_learning_rate=0.1, **ALL),
}


@pytest.fixture
def nodes(world: World, tmp_path: Path) -> Iterator[Any]:
    """Makes a Grid over a world's devices."""
    grids: list[Loopback] = []

    def made(**settings: Any) -> Loopback:
        app = client_app(
            world.model,
            lambda node: world.partitions[node],
            config_of(**settings),
            optimizer=optimizers.SGD(0.1),
            state_dir=tmp_path / "nodes",
        )
        grids.append(Loopback(app, 8))
        return grids[-1]

    yield made
    for grid in grids:
        grid.close()


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_of_flower_runs_by_itself(
    world: World, nodes: Any, name: str
) -> None:
    grid = nodes(local_epochs=3, codec="int8")
    result = STRATEGIES[name].start(grid, arrays_of(world.model), 4, timeout=60)
    losses = [result.evaluate_metrics_clientapp[i]["loss"] for i in range(1, 5)]
    assert losses[-1] < losses[0]
    assert set(result.arrays) == set(world.model.parameters())


def test_its_mean_is_that_of_our_loop(world: World, nodes: Any) -> None:
    strategy = flower.FedAvg(**ALL)
    result = strategy.start(nodes(), arrays_of(world.model), 3, timeout=60)
    trainer = Trainer(world.model, "cross_entropy", optimizers.SGD(0.1))
    trainer.restart({name: array.numpy() for name, array in result.arrays.items()})
    ours = world.run(clients_per_round=8).rounds[-1].loss
    theirs = trainer.evaluate(world.test, len(world.test[1]))["loss"]
    # The devices of this server have other numbers than ours: they shuffle the same.
    assert abs(ours - theirs) < 1e-4


def test_what_is_personal_stays(world: World, nodes: Any, tmp_path: Path) -> None:
    grid = nodes(personal="last:1")
    result = flower.FedAvg(**ALL).start(grid, arrays_of(world.model), 2, timeout=60)
    assert set(result.arrays) == {"w1", "b1"}
    kept = sorted((tmp_path / "nodes").glob("*/*/federated.npz"))
    assert len(kept) == 8
    heads = [np.load(path)["after/own/w2"] for path in kept]
    assert not np.array_equal(heads[0], heads[1])


def asked(grid: Loopback, kind: str, content: RecordDict) -> Message:
    (reply,) = grid.send_and_receive([Message(content, 1, kind)], timeout=30)
    return reply


def train(world: World, **changes: np.ndarray) -> RecordDict:
    arrays = {k: Array(v) for k, v in (world.model.parameters() | changes).items()}
    config = ConfigRecord({"server-round": 1})
    return RecordDict({"arrays": ArrayRecord(arrays), "config": config})


def test_a_change_is_clipped_whatever_the_server(world: World, nodes: Any) -> None:
    grid = nodes(privacy=Privacy(clip=0.01, noise_multiplier=1.0))
    reply = asked(grid, "train", train(world))
    start = world.model.parameters()
    record = reply.content.array_records["arrays"]
    moved = [record[name].numpy() - start[name] for name in start]
    norm = float(np.sqrt(sum(np.square(change).sum() for change in moved)))
    assert norm == pytest.approx(0.01, rel=1e-3)


def test_a_device_that_hides_its_update_never_shows_it(
    world: World, nodes: Any
) -> None:
    grid = nodes(secure_aggregation=True)
    reply = asked(grid, "train", train(world))
    assert "shows sums of updates, and none alone" in reply.error.reason
    start = world.model.parameters()
    layout = Layout({name: array.shape for name, array in start.items()})
    order = Order(1, layout.flat(start), 1)
    content = order_content(order, Told("run", 0, 0), layout.hash)
    reply = asked(grid, ORDER, content)
    assert "shows sums of updates, and none alone" in reply.error.reason


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("b1", np.zeros(3, np.float32), "update of 'b1'"),
        ("b1", np.full(8, np.nan, np.float32), "numbers without end"),
    ],
)
def test_what_is_no_model_is_refused(
    world: World, nodes: Any, name: str, value: np.ndarray, text: str
) -> None:
    reply = asked(nodes(), "train", train(world, **{name: value}))
    assert text in reply.error.reason


def test_other_arrays_are_refused(nodes: Any) -> None:
    content = RecordDict({"arrays": ArrayRecord([np.zeros(3)])})
    for kind in ("train", "evaluate"):
        reply = asked(nodes(), kind, content)
        assert "the arrays are of another model" in reply.error.reason


@pytest.mark.parametrize("data", [(np.zeros((0, 12)), []), (np.zeros((3, 12)), [1])])
def test_data_that_are_none_are_an_error(
    world: World, tmp_path: Path, data: Any
) -> None:
    app = client_app(world.model, lambda node: data, state_dir=tmp_path)
    grid = Loopback(app, 1)
    reply = asked(grid, "train", train(world))
    grid.close()
    assert "node 0: got" in reply.error.reason


def test_where_a_node_remembers_is_a_folder(world: World, tmp_path: Path) -> None:
    app = client_app(world.model, lambda node: world.partitions[node])
    grid = Loopback(app, 1, {"state-dir": 7})
    reply = asked(grid, "train", train(world))
    grid.close()
    assert "state-dir=7: want a folder" in reply.error.reason
    assert issubclass(ew.ConfigError, ew.EdgewiseError)
