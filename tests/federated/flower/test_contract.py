"""What this project takes for granted of Flower; a new minor is tried here first."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from flwr import app, clientapp, serverapp
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

import edgewise_federated.flower as border
from edgewise_federated.flower.identity import identify
from edgewise_federated.flower.version import private

HERE = Path(border.__file__).parent
PUBLIC = ("flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy")


def trees() -> dict[str, ast.Module]:
    found = {path.name: ast.parse(path.read_text()) for path in HERE.glob("*.py")}
    assert len(found) > 20
    return found


def test_what_is_imported_of_flower_is_public() -> None:
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith("flwr") or node.module in PUBLIC, name
            if isinstance(node, ast.Import):
                assert not any(one.name.startswith("flwr") for one in node.names), name


def privates() -> set[tuple[str, str]]:
    """Modules and names that ``private`` is asked for, where both are told."""
    found = set()
    for tree in trees().values():
        names = {
            target.id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if called and node.func.id == "private" and len(node.args) == 2:
                parts = [
                    one.value if isinstance(one, ast.Constant) else names.get(one.id)
                    for one in node.args
                    if isinstance(one, ast.Constant | ast.Name)
                ]
                if len(parts) == 2 and all(isinstance(part, str) for part in parts):
                    found.add(tuple(parts))
    return found


def test_private_names_are_there() -> None:
    assert len(privates()) > 10
    for module, name in privates():
        private(module, name)


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (app, "Array ArrayRecord ConfigRecord Context Error Message MessageType"),
        (app, "MetricRecord RecordDict"),
        (clientapp, "ClientApp"),
        (serverapp, "Grid ServerApp strategy"),
        (Grid, "get_node_ids push_messages pull_messages send_and_receive set_run run"),
        (Strategy, "configure_train aggregate_train"),
        (clientapp.ClientApp, "train query evaluate __call__"),
        (serverapp.ServerApp, "main __call__"),
    ],
)
def test_public_names_are_there(owner: object, names: str) -> None:
    for name in names.split():
        assert hasattr(owner, name), name


def test_nothing_else_is_abstract_of_a_grid() -> None:
    ours = {"set_run", "run", "create_message", "get_node_ids"}
    ours |= {"push_messages", "pull_messages", "send_and_receive"}
    assert Grid.__abstractmethods__ == ours


def test_strategies_are_called_as_we_call_them() -> None:
    train = list(inspect.signature(Strategy.configure_train).parameters)
    assert train == ["self", "server_round", "arrays", "config", "grid"]
    joined = list(inspect.signature(Strategy.aggregate_train).parameters)
    assert joined == ["self", "server_round", "replies"]


def test_records_hold_what_messages_are_made_of() -> None:
    identify()
    array = Array("float32", (3,), "edgewise.int8", b"abc")
    config = ConfigRecord({"b": b"\x00", "i": [1, 2], "s": ["x"], "f": 0.5, "n": 7})
    metrics = MetricRecord({"num-examples": 3, "loss": 0.5})
    content = RecordDict(
        {"arrays": ArrayRecord({"change": array}), "order": config, "metrics": metrics}
    )
    message = Message(content, 5, "train.order", ttl=9.0)
    reply = Message(RecordDict(), reply_to=message)
    assert reply.metadata.src_node_id == 5
    assert dict(message.content.config_records["order"])["b"] == b"\x00"
    assert message.content.array_records["arrays"]["change"].stype == "edgewise.int8"
    message.metadata.__dict__["_message_id"] = "name"
    answer = Message(app.Error(2, "why"), reply_to=message)
    assert answer.metadata.reply_to_message_id == "name"
    assert answer.error.reason == "why"
