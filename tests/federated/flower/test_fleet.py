"""A real fleet on this machine: it learns, and leaves no process behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise_federated.flower.processes import Family
from edgewise_federated.flower.superlink import Settings, SuperLink, free_port
from edgewise_federated.sample import leaning_digits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]
PATIENCE = 240.0  # seconds; machines are busy
EDGEWISE = [sys.executable, "-m", "edgewise", "federate"]


def below(root: int) -> dict[int, str]:
    """Lines of all processes below one."""
    parents, lines = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        parents[int(entry.name)], lines[int(entry.name)] = int(stat[1]), line
    found = {root}
    while more := {pid for pid, up in parents.items() if up in found} - found:
        found |= more
    return {pid: lines[pid] for pid in found - {root}}


def left(seen: Mapping[int, str]) -> list[str]:
    """Those of some processes that go on, after a while in which they may end.

    Where their owner was killed, Flower's own notice one after the other, and say
    good-bye to each other first.
    """
    for _ in range(300):
        for pid in seen:  # orphans may have become ours
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        found = [line for pid, line in seen.items() if lives(pid)]
        if not found:
            break
        time.sleep(0.1)
    return found


def lives(pid: int) -> bool:
    """Whether a process runs; one of whose end nobody has taken note does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Watched:
    """A command that runs, and all that was seen below it."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [*EDGEWISE, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.seen: dict[int, str] = {}

    def until(self, done: Callable[[], bool]) -> None:
        """Look on until something holds, or the command has ended."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and not done():
            self.seen |= {
                p: line for p, line in below(self.process.pid).items() if line
            }
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def named(self, *words: str) -> list[int]:
        return [p for p, line in self.seen.items() if all(w in line for w in words)]

    def end(self) -> tuple[int, str, str]:
        """Status and what it said, when it has ended."""
        self.until(lambda: False)
        out, error = self.process.communicate()
        return self.process.returncode, out, error


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped digits as files: model.ew, 0.npz and 1.npz to learn, test.npz."""
    folder, sample = tmp_path_factory.mktemp("digits"), leaning_digits()
    sample.model.save(folder / "model.ew")
    x, y = sample.train
    for index in range(2):
        np.savez(folder / f"{index}.npz", image=x[index::2], target=y[index::2])
    np.savez(folder / "test.npz", image=sample.test[0], target=sample.test[1])
    return folder


def test_up_learns_over_tls_and_leaves_nothing() -> None:
    up = Watched("up", "--nodes", 2, "--rounds", 3, "--tls", "--json")
    status, out, error = up.end()
    assert status == 0, error
    figures = json.loads(out)
    assert (figures["rounds"], figures["nodes"], figures["failures"]) == (3, 2, 0)
    assert figures["accuracy"] > 0.5
    assert figures["node_rss_mib"] < 200
    assert len(up.named("federate", "node")) == 2
    assert len(up.named("flower-superlink")) == 1
    assert left(up.seen) == []


def test_up_hides_updates_in_sums() -> None:
    up = Watched("up", "--nodes", 3, "--rounds", 2, "--tls", "--secure", "--json")
    status, out, error = up.end()
    assert status == 0, error
    figures = json.loads(out)
    assert (figures["rounds"], figures["nodes"], figures["failures"]) == (2, 3, 0)
    assert left(up.seen) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_up_leaves_nothing_when_it_is_ended(number: int) -> None:
    up = Watched("up", "--rounds", 500)
    up.until(lambda: len(up.named("federate", "node")) == 2)
    os.kill(up.process.pid, number)
    assert up.end()[0] != 0
    assert left(up.seen) == []


@pytest.mark.parametrize("words", [("federate", "node"), ("flower-superlink",)])
def test_up_leaves_nothing_when_a_child_is_killed(words: tuple[str, ...]) -> None:
    up = Watched("up", "--rounds", 500)
    up.until(lambda: len(up.named("federate", "node")) == 2)
    os.kill(up.named(*words)[0], signal.SIGKILL)
    status, _, error = up.end()
    assert status == 2
    assert "was killed (signal 9)" in error
    assert left(up.seen) == []


@pytest.fixture
def fleet(tmp_path: Path, files: Path) -> Iterator[Fleet]:
    with Family() as family:
        yield Fleet(family, tmp_path, files)


class Fleet:
    """An app, and what runs it."""

    def __init__(self, family: Family, folder: Path, files: Path) -> None:
        self.family, self.folder, self.files = family, folder, files
        self.port = free_port()
        self.environment = dict(os.environ)

    def call(self, *arguments: object) -> None:
        subprocess.run([*EDGEWISE, *map(str, arguments)], check=True)

    def export(self, rounds: int) -> Path:
        app, test = self.folder / "app", self.files / "test.npz"
        self.call(
            *("export", app, self.files / "model.ew", "--test", test),
            *("--rounds", rounds, "--per-round", 2, "--codec", "int8"),
            *("--data", self.files / "{node}.npz"),
        )
        return app

    def server(self, app: Path) -> Watched:
        state = self.folder / "kept"
        return Watched(
            *("server", app, "--port", self.port, "--state", state, "--json"),
        )

    def node(self, app: Path, index: int) -> None:
        line = [*EDGEWISE, "node", str(app), "--superlink", f"127.0.0.1:{self.port}"]
        line += ["--data", str(self.files / f"{index}.npz"), "--number", str(index)]
        line += ["--state", str(self.folder / f"state-{index}")]
        log = self.folder / f"{index}.log"
        self.family.start(f"node {index}", line, self.environment, log)


def accuracy(model: Path, files: Path) -> float:
    with ew.Session(ew.load(model)) as session, np.load(files / "test.npz") as test:
        found = session.run({"image": test["image"]})["logits"].argmax(1)
        return float((found == test["target"]).mean())


def test_a_server_that_is_killed_goes_on(fleet: Fleet) -> None:
    app = fleet.export(rounds=6)
    history = fleet.folder / "kept" / "history.json"
    first = fleet.server(app)
    for index in range(2):
        fleet.node(app, index)
    first.until(lambda: history.exists() and len(json.loads(history.read_text())) > 1)
    first.process.kill()
    _, _, error = first.end()
    assert history.exists(), error
    assert left(first.seen) == []
    before = json.loads(history.read_text())
    assert 1 < len(before) < 6
    status, out, error = fleet.server(app).end()
    assert status == 0, error
    rounds = json.loads(out)["rounds"]
    assert [one["number"] for one in rounds] == [1, 2, 3, 4, 5, 6]
    assert rounds[: len(before)] == before
    found = accuracy(fleet.folder / "kept" / "model.ew", fleet.files)
    assert found == pytest.approx(rounds[-1]["accuracy"], abs=1e-6)
    fleet.family.want_all()


def test_stock_machines_run_the_same_app(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fleet.folder)  # results lie where the SuperLink was started
    app, here = fleet.export(rounds=2), "127.0.0.1"
    settings = Settings(fleet.folder / "home", here, fleet.port, here)
    superlink = SuperLink(fleet.family, settings)
    superlink.wait()
    path = superlink.environment["PATH"]
    for index in range(2):
        line = [str(shutil.which("flower-supernode", path=path)), "--insecure"]
        line += ["--superlink", settings.address, "--host", here]
        line += ["--port", str(free_port())]
        line += ["--node-config", f"partition-id={index} num-partitions=2"]
        log = fleet.folder / f"{index}.log"
        fleet.family.start(f"node {index}", line, superlink.environment, log)
    text = f'[superlink.here]\naddress = "{settings.address}"\ninsecure = true\n'
    (settings.home / "config.toml").write_text(text)
    done = subprocess.run(
        [str(shutil.which("flwr", path=path)), "run", str(app), "here", "--stream"],
        env=superlink.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "round 2: 2 of 2 devices" in done.stdout, done.stdout[-3000:]
    assert (fleet.folder / "edgewise-server" / "model.ew").exists()
    fleet.family.want_all()
