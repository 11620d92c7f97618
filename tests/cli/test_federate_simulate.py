"""``edgewise federate simulate``: what it tells, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

import edgewise as ew
from edgewise.cli.app import app
from edgewise_federated.sample import leaning_digits

QUICK = ("--rounds", "2", "--epochs", "1", "--devices", "4", "--batch-size", "40")


def simulated(*arguments: object) -> Result:
    """The command in this process."""
    line = ["federate", "simulate", *map(str, arguments)]
    return CliRunner().invoke(app("federate"), line)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaning")
    sample = leaning_digits()
    sample.model.save(folder / "digits.ew")
    for name, (x, y) in (("train", sample.train), ("test", sample.test)):
        np.savez(folder / f"{name}.npz", image=x, target=y)
    return folder


def test_the_shipped_digits_are_learned(command, tmp_path: Path) -> None:
    target, plot = tmp_path / "d.ew", tmp_path / "d.svg"
    options = ("--rounds", "4", "--devices", "5", "--codec", "int8")
    done = command("federate", "simulate", *options, "-o", target, "--plot", plot)
    assert done.returncode == 0, done.stderr
    first, *rounds, last, file = done.stdout.splitlines()
    assert first == "260 examples on 5 devices, 100 to test"
    assert [line.split(":")[0] for line in rounds] == [
        f"round {i}" for i in range(1, 5)
    ]
    assert "5 of 5 devices, accuracy 0." in rounds[0]
    assert last.startswith("accuracy 0.43")
    assert file == str(target)
    assert plot.stat().st_size > 1000
    _, (x, y) = leaning_digits()[1:]
    with ew.Session(target) as session:
        found = session.run({"image": x})["logits"].argmax(1)
    assert (found == y).mean() > 0.7


def test_figures_are_for_programs(files: Path) -> None:
    model, data = files / "digits.ew", files / "train.npz"
    options = (*QUICK, "--split", "dirichlet:0.5", "--json", "--per-round", 3)
    done = simulated(model, "--data", data, *options)
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert [one["clients"] for one in figures["rounds"]] == [3, 3]
    assert figures["upload_bytes"] == sum(r["upload_bytes"] for r in figures["rounds"])
    assert 0.2 < figures["before"]["accuracy"] < 0.7


def test_a_run_goes_on(files: Path, tmp_path: Path) -> None:
    data = ("--data", files / "train.npz", "--test", files / "test.npz")
    common = (files / "digits.ew", *data, *QUICK, "--checkpoint", tmp_path / "run")
    assert simulated(*common).exit_code == 0
    done = simulated(*common, "--rounds", "3")
    assert f"{tmp_path / 'run'}: goes on after round 2\nround 3:" in done.stdout
    whole = simulated(*common[:-2], "--rounds", "3")
    lines = [result.stdout.splitlines() for result in (done, whole)]
    assert lines[0][2] == lines[1][3]
    again = simulated(*common, "--rounds", "3")
    assert again.stdout.splitlines()[-1].startswith("accuracy")


def test_privacy_is_told(files: Path) -> None:
    options = ("--clip", "1", "--noise", "1.5", "--personal", "norm", *QUICK)
    done = simulated(*options)
    assert done.exit_code == 0, done.output
    assert ", epsilon " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.ew",), "want a model and --data"),
        (("--data", "d.npz"), "want a model and --data"),
        (("--clip", "1"), "want both"),
        (("--clip", "1", "--noise", "0"), "above 0"),
        (("--clip", "1", "--noise", "1"), "want personal='norm'"),
        (("--split", "best"), "split='best'"),
        (("--devices", "261"), "at least 261"),
        (("--strategy", "best"), "strategy='best'"),
        (("--option", "mu"), "want NAME=NUMBER"),
        (("--option", "mu=1"), "fedavg has no mu"),
        (("--codec", "int3"), "codec='int3'"),
        (("--optimizer", "best"), "--optimizer 'best'"),
        (("--personal", "nothing*"), "nothing*"),
        (("--plot", "p.txt"), "ends in .png"),
        (("--plot", "nowhere/p.png"), "no folder nowhere"),
        (("-o", "nowhere/p.ew"), "no folder nowhere"),
        (("--loss", "best"), "best"),
    ],
)
def test_what_cannot_be_meant_is_one_error(
    arguments: tuple[str, ...], message: str
) -> None:
    done = simulated(*arguments)
    assert isinstance(done.exception, ew.EdgewiseError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


@pytest.mark.parametrize("share", ["0", "0.001"])
def test_something_is_evaluated(files: Path, share: str) -> None:
    data = ("--data", files / "train.npz", "--held-out", share)
    done = simulated(files / "digits.ew", *data)
    assert "want both, or --test" in str(done.exception)


def test_an_error_is_one_line(command) -> None:
    done = command("federate", "simulate", "--split", "best")
    assert done.returncode == 2
    assert done.stderr.startswith("edgewise: split='best': want 'random'")
    assert len(done.stderr.splitlines()) == 1
