"""Our node and a stock SuperLink, as processes with TLS and keys on this machine."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgewise_federated.flower.certificates import (
    Certificates,
    make_certificates,
    make_node_keys,
    public_of,
)
from edgewise_federated.flower.control import Control
from edgewise_federated.flower.processes import Family, Started
from edgewise_federated.flower.superlink import Settings, SuperLink, free_port

pytestmark = pytest.mark.slow
MIB = 2**20
PATIENCE = 180.0  # seconds; machines are busy
HERE = "127.0.0.1"

# An app of nobody's: adds one to what it is sent; fails and is slow where it is told.
NODE = """
import logging, sys, time
from pathlib import Path
import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from edgewise_federated.flower.calls import Place
from edgewise_federated.flower.node import Node

logging.basicConfig(level="INFO")
app = ClientApp()

@app.train()
def train(message, context):
    w = message.content["arrays"]["w"].numpy()
    if w[0] == 1 and sys.argv[5] == "fails":
        raise RuntimeError("battery")
    print("at work", flush=True)
    time.sleep(600 if sys.argv[5] == "sleeps" else 0)
    return Message(
        RecordDict({
            "arrays": ArrayRecord({"w": Array(w + 1)}),
            "metrics": MetricRecord({"num-examples": 1}),
        }),
        reply_to=message,
    )

place = Place(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
Node(app, place, {"partition-id": int(sys.argv[4])}).run()
print("ended well", flush=True)
"""
SERVER = """
import numpy as np
from pathlib import Path
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()

@app.main()
def main(grid, context):
    strategy = FedAvg(
        fraction_evaluate=0.0, min_train_nodes={nodes}, min_available_nodes={nodes}
    )
    start = ArrayRecord({{"w": Array(np.zeros(300_000, np.float32))}})
    found = strategy.start(grid=grid, initial_arrays=start, num_rounds=3, timeout=90)
    Path({result!r}).write_text(str(found.arrays["w"].numpy().max()))
"""
PROJECT = """
[project]
name = "adds-one"
version = "0.1.0"
license = "Apache-2.0"
dependencies = ["flwr"]

[tool.flwr.app]
publisher = "local"

[tool.flwr.app.components]
serverapp = "adds_one.server:app"
clientapp = "adds_one.server:app"
"""


class Stage:
    """A SuperLink, files of nodes, and what to start."""

    def __init__(self, family: Family, folder: Path) -> None:
        self.family, self.folder = family, folder
        self.files: Certificates = make_certificates(folder / "certs", [])
        self.keys = make_node_keys(folder / "certs", ["0", "1"])
        (folder / "node.py").write_text(NODE)
        self.settings = Settings(
            folder / "home", HERE, free_port(), HERE, self.files, folder / "sl.db"
        )
        self.superlink = SuperLink(family, self.settings)
        self.superlink.wait()

    def node(self, index: int, how: str = "works") -> Started:
        line = [sys.executable, str(self.folder / "node.py"), self.settings.address]
        line += [str(self.files.authority), str(self.keys[index]), str(index)]
        line.append(how)
        log = self.folder / f"{index}-{time.time_ns()}.log"
        return self.family.start(f"node {index}", line, self.superlink.environment, log)

    def app(self, nodes: int) -> tuple[Path, Path]:
        """Folder of a server app for so many nodes, and what it writes."""
        folder, result = self.folder / f"app-{nodes}", self.folder / "result"
        (folder / "adds_one").mkdir(parents=True)
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "adds_one" / "__init__.py").touch()
        code = SERVER.format(nodes=nodes, result=str(result))
        (folder / "adds_one" / "server.py").write_text(code)
        return folder, result


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Family() as family:
        yield Stage(family, tmp_path)


def ended(control: Control, run: int) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        state = control.state(run)
        if state.status == "finished":
            return state.how
        time.sleep(0.5)
    raise AssertionError(f"the run does not end: {state}")


def until(log: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.2)


def test_nodes_answer_a_stock_superlink(stage: Stage) -> None:
    with stage.superlink.control() as control:
        for key in stage.keys:
            control.register(public_of(key))
            control.register(public_of(key))  # a server that starts again says so
        nodes = [stage.node(0), stage.node(1, "fails")]
        app, result = stage.app(2)
        assert ended(control, control.start(app)) == "completed"
    # Node 1 raised in round two; Flower counted that, and went on with the other.
    assert float(result.read_text()) == 3.0
    assert "RuntimeError: battery" in nodes[1].log.read_text()
    assert max(node.peak() for node in nodes) < 200 * MIB
    for node in nodes:
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(30) == 0
        assert "ended well" in node.log.read_text()


def test_a_key_that_nobody_registered_is_refused(stage: Stage) -> None:
    node = stage.node(0)
    assert node.process.wait(PATIENCE) != 0
    assert "does not know this node's key" in node.log.read_text()


def test_a_node_comes_back_to_a_server_that_was_killed(stage: Stage) -> None:
    with stage.superlink.control() as control:
        control.register(public_of(stage.keys[0]))
    node = stage.node(0)
    until(node.log, "is there")
    stage.superlink.process.process.kill()
    stage.family.stop([stage.superlink.process])
    until(node.log, "again in")
    stage.superlink = SuperLink(stage.family, stage.settings)
    stage.superlink.wait()
    app, result = stage.app(1)
    with stage.superlink.control() as control:
        assert ended(control, control.start(app)) == "completed"
    assert float(result.read_text()) == 3.0
    assert node.process.poll() is None


def test_a_node_that_is_stopped_at_work_says_so(stage: Stage) -> None:
    with stage.superlink.control() as control:
        for key in stage.keys:
            control.register(public_of(key))
        busy, other = stage.node(0, "sleeps"), stage.node(1)
        for node in (busy, other):
            until(node.log, "is there")
        app, result = stage.app(1)
        run = control.start(app)
        until(busy.log, "at work")
        busy.process.send_signal(signal.SIGTERM)
        assert busy.process.wait(30) == 0
        assert "ended well" in busy.log.read_text()
        # Nobody waits for it: its answer was an error, and the other goes on.
        assert ended(control, run) == "completed"
    assert result.exists()
