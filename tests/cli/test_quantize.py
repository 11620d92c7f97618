"""The command that makes models small, on the network that the package ships."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from edgewise.tools.demo import held_out


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quantize") / "examples.npz"
    images, labels = held_out()
    np.savez(path, image=images, y=labels)
    return path


def test_a_guarded_model_keeps_its_accuracy(
    command, model: Path, examples: Path, tmp_path: Path
) -> None:
    target = tmp_path / "small.ew"
    guard = ("--max-drop", 0.0, "--labels", "y", "--method", "percentile", "--json")
    done = command("quantize", model, examples, "-o", target, *guard)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["accuracy"]["after"] >= figures["accuracy"]["before"]
    assert figures["bytes"] == target.stat().st_size < figures["source_bytes"] / 2
    layers = json.loads(command("inspect", target, "--json").stdout)["layers"]
    kinds = {layer["name"]: layer["weights"] for layer in layers}
    wanted = {"int8": "i8", "float32": "f32"}
    told = {row["name"]: wanted[row["precision"]] for row in figures["layers"]}
    assert kinds == told
    assert "i8" in kinds.values()


def test_inspect_shows_the_precision_of_layers(
    command, model: Path, examples: Path, tmp_path: Path
) -> None:
    target = tmp_path / "small.ew"
    done = command("quantize", model, examples, "-o", target, "--keep", "head*")
    assert done.returncode == 0, done.stderr
    assert "SQNR" in done.stdout
    shown = command("inspect", target).stdout
    assert "byte_conv" in shown
    assert "edgewise.quantization" not in shown
    assert "byte_linear" not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-drop", "0.1"), "--labels"),
        (("--labels", "z"), "holds image, y"),
        (("--method", "guess"), "minmax"),
        (("--weights", "int3"), "int8"),
        (("--keep", "*"), "without layers"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    command, model: Path, examples: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = command("quantize", model, examples, *arguments)
    assert done.returncode == 2, done.stdout
    (line,) = done.stderr.strip().splitlines()
    assert words in line


def test_other_arrays_are_refused(command, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, a=np.zeros(3), b=np.zeros(3))
    assert "want inputs image" in command("quantize", model, path).stderr
    np.savez(path, image=np.zeros((3, 1, 8, 8), np.float32), y=np.zeros(4, np.int64))
    done = command("quantize", model, path, "--labels", "y")
    assert "want as many of each" in done.stderr


def test_the_model_is_never_written_over(command, model: Path, examples: Path) -> None:
    done = command("quantize", model, examples, "-o", model)
    assert done.returncode == 2
    assert "would overwrite" in done.stderr


@pytest.mark.parametrize("name", ["quantize", "compress"])
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.arange(10, 370), "labels: got class 10; the output has 10 classes"),
        (np.zeros(360), "labels: got float64; want the numbers of classes"),
    ],
)
def test_labels_that_are_no_classes_are_refused_before_anything_is_written(
    command, model: Path, tmp_path: Path, name: str, labels: np.ndarray, words: str
) -> None:
    path, target = tmp_path / "strange.npz", tmp_path / "small.ew"
    np.savez(path, image=held_out()[0], y=labels)
    done = command(name, model, path, "-o", target, "--labels", "y")
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert not target.exists()


@pytest.mark.parametrize("name", ["quantize", "compress"])
def test_a_place_that_is_not_there_is_refused_at_once(
    command, model: Path, examples: Path, tmp_path: Path, name: str
) -> None:
    done = command(name, model, examples, "-o", tmp_path / "none" / "small.ew")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "no folder" in line
