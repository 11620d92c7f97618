"""The command that makes models smaller, on the network that the package ships."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise.tools.demo import held_out


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compress") / "examples.npz"
    images, labels = held_out()
    np.savez(path, image=images, y=labels)
    return path


@pytest.mark.parametrize(
    ("options", "share"),
    [
        (("--channels", 0.5), 0.5),
        (("--prune", 0.8), 0.4),
        (("--prune", 0.5, "--cluster", 16), 0.3),
        (("--binary",), 0.2),
    ],
)
def test_files_become_smaller_and_figures_tell(
    command, model: Path, examples: Path, tmp_path: Path, options: tuple, share: float
) -> None:
    target = tmp_path / "small.ew"
    done = command("compress", model, examples, "-o", target, *options, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["bytes"] == target.stat().st_size
    assert figures["bytes"] <= share * figures["source_bytes"]
    assert figures["before"].keys() == figures["after"].keys()
    assert figures["before"]["accuracy"] > 0.95
    images, labels = held_out()
    with ew.Session(target) as session:
        right = (np.asarray(session(images)).argmax(1) == labels).mean()
    assert figures["after"]["accuracy"] == pytest.approx(right, abs=1e-2)


def test_training_goes_on_from_there(
    command, model: Path, examples: Path, tmp_path: Path
) -> None:
    small, again = tmp_path / "small.ew", tmp_path / "again.ew"
    assert command("compress", model, "-o", small, "--prune", 0.9).returncode == 0
    data = (examples, "--target", "y", "--epochs", 2)
    assert command("train", small, *data, "-o", again).returncode == 0
    zeros = [ew.load(path).parameters() for path in (small, again)]
    for key, weight in zeros[0].items():
        if weight.ndim > 1:
            np.testing.assert_array_equal(zeros[1][key] == 0, weight == 0)
    bytes_ = tmp_path / "bytes.ew"
    assert command("train", model, *data, "-o", bytes_, "--int8").returncode == 0
    assert ew.load(bytes_).quantization is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--binary", "--cluster", "4"), "one of the two"),
        (("--prune", "1.5"), "share=1.5"),
        (("--cluster", "4", "--keep", "*"), "without real weights"),
    ],
)
def test_what_cannot_be_is_one_line(
    command, model: Path, tmp_path: Path, arguments: tuple, words: str
) -> None:
    done = command("compress", model, "-o", tmp_path / "s.ew", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
