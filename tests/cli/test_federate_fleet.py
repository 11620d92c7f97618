"""Commands of a fleet that open no socket: what they write, and what they refuse."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

THERE = ("--superlink", "fleet.example.org:8000")
HERE = ("--superlink", "127.0.0.1:9")


@pytest.fixture(scope="module")
def app(command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "app"
    done = command("federate", "export", folder, "--rounds", 7, "--codec", "int8")
    assert done.returncode == 0, done.stderr
    assert "fleet.toml" in done.stdout
    assert "edgewise federate node app --data" in done.stdout
    return folder


def refused(done) -> str:
    """The one line of an error."""
    assert done.returncode == 2, done.stdout
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    "name", ["up", "certificates", "export", "server", "node", "simulate"]
)
def test_help_shows_an_example(command, name: str) -> None:
    done = command("federate", name, "--help")
    assert f"Example: edgewise federate {name}" in done.stdout


def test_an_export_says_what_was_asked(app: Path) -> None:
    how = tomllib.loads((app / "edgewise_app" / "fleet.toml").read_text())
    assert how["federated"]["codec"] == "int8"
    assert how["federated"]["rounds"] == 7
    assert (how["optimizer"], how["lr"]) == ("sgd", 0.05)


def test_an_export_takes_a_model_and_its_test(
    command, tmp_path: Path, model: Path
) -> None:
    np.savez(tmp_path / "t.npz", image=np.zeros((3, 1, 8, 8), "f4"), y=np.arange(3))
    folder, test = tmp_path / "app", tmp_path / "t.npz"
    line = ("export", folder, model, "--test", test, "--target", "y", "--json")
    done = command("federate", *line)
    assert done.returncode == 0, done.stderr
    names = {Path(file).name for file in json.loads(done.stdout)["files"]}
    assert names >= {"pyproject.toml", "client.py", "server.py", "fleet.toml"}
    assert "holds something already" in refused(command("federate", *line))


@pytest.mark.parametrize("more", [(), ("--ca", "ca.crt"), ("--key", "key")])
def test_a_node_that_would_leave_this_machine_is_refused(
    command, app: Path, more: tuple[str, ...]
) -> None:
    line = refused(command("federate", "node", app, "--data", "d", *THERE, *more))
    assert "--ca" in line
    assert "Traceback" not in line


def test_a_node_without_data_is_refused(command, app: Path) -> None:
    assert "--data" in refused(command("federate", "node", app, *HERE))


@pytest.mark.parametrize("name", ["nowhere", "json:loads", "no.such.module:app"])
def test_a_node_without_an_app_is_refused(command, name: str) -> None:
    assert name in refused(command("federate", "node", name, *HERE))


def test_a_server_that_others_reach_is_refused(command, app: Path) -> None:
    line = refused(command("federate", "server", app, "--host", "192.168.1.4"))
    assert "want --certificates" in line


def test_a_server_without_its_certificates_is_refused(
    command, app: Path, tmp_path: Path
) -> None:
    done = command("federate", "server", app, "--certificates", tmp_path)
    assert "ca.crt" in refused(done)
