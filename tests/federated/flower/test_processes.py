"""Processes end with the block that started them, and so does what they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgewise.errors import FederatedError
from edgewise_federated.flower.processes import Family

# A child that starts a grandchild in a session of its own, and says who that is.
PARENT = """
import subprocess, sys, time
line = [sys.executable, "-c", "import time; time.sleep(600)"]
print(subprocess.Popen(line, start_new_session=True).pid, flush=True)
time.sleep(600)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
OWNER = """
import os, signal, sys
from pathlib import Path
from edgewise_federated.flower.processes import Family
with Family() as family:
    line = [sys.executable, "-c", "import time; time.sleep(600)"]
    started = family.start("a child", line, os.environ, Path(sys.argv[1]))
    print(started.process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone can do that")


def said(log: Path) -> str:
    """The first line of an output, once it is there."""
    for _ in range(600):
        if (text := log.read_text()).endswith("\n"):
            return text.split()[0]
        time.sleep(0.05)
    raise AssertionError(f"{log} stays empty")


def gone(pid: int) -> bool:
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.05)
    return False


@LINUX
def test_what_a_child_started_ends_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Family() as family:
        started = family.start("it", [sys.executable, "-c", PARENT], os.environ, log)
        grandchild = int(said(log))
        assert started.peak() > 2**20
        assert Path(f"/proc/{grandchild}").exists()
    assert started.process.poll() is not None
    assert gone(grandchild)


@LINUX
def test_children_of_others_stay(tmp_path: Path) -> None:
    line = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(line) as other:
        with Family() as family:
            family.start("it", line, os.environ, tmp_path / "log")
        assert other.poll() is None
        other.kill()


def test_who_does_not_hear_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewise_federated.flower.processes.PATIENCE", 0.2)
    log = tmp_path / "log"
    with Family() as family:
        started = family.start("it", [sys.executable, "-c", DEAF], os.environ, log)
        assert said(log) == "deaf"
    assert started.process.returncode == -signal.SIGKILL


def test_an_error_in_the_block_ends_them_too(tmp_path: Path) -> None:
    line = [sys.executable, "-c", "import time; time.sleep(600)"]
    found = []

    def interrupted() -> None:
        with Family() as family:
            found.append(family.start("it", line, os.environ, tmp_path / "log"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert found[0].process.returncode == -signal.SIGTERM


def test_one_that_ended_is_an_error_that_says_why(tmp_path: Path) -> None:
    line = [sys.executable, "-c", "raise SystemExit('no such place')"]
    with Family() as family:
        started = family.start("node 3", line, os.environ, tmp_path / "log")
        started.process.wait()
        with pytest.raises(FederatedError, match=r"node 3 ended.*no such place"):
            family.want_all()


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with Family() as family, pytest.raises(FederatedError, match="cannot be started"):
        family.start("it", ["/no/such/program"], os.environ, tmp_path / "log")


@LINUX
def test_children_end_where_their_owner_is_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWNER, str(tmp_path / "log")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    state = Path(f"/proc/{child}/stat")
    for _ in range(200):
        # Who is nobody's child any more may stay as a name until somebody takes note.
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("the child goes on")
