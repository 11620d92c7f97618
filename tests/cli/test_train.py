"""``edgewise train``: what it writes, shows and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise.tools.demo import held_out
from edgewise_trainer import Trainer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upside-down digits to learn from, and some to evaluate on."""
    folder = tmp_path_factory.mktemp("digits")
    images, labels = held_out()
    turned = np.ascontiguousarray(images[:, :, ::-1, ::-1])
    np.savez(folder / "train.npz", image=turned[:240], target=labels[:240])
    np.savez(folder / "held.npz", pictures=turned[240:], target=labels[240:])
    np.savez(folder / "named.npz", image=turned[:240], digit=labels[:240])
    np.savez(folder / "red.npz", image=turned[:9].repeat(3, 1), target=labels[:9])
    np.savez(folder / "far.npz", image=turned[:9], target=np.arange(9) + 5)
    np.savez(folder / "nan.npz", image=turned[:9] + np.nan, target=labels[:9])
    np.savez(folder / "real.npz", image=turned[:9], target=np.zeros(9, np.float32))
    np.savez(folder / "single.npz", image=turned[:9], target=np.array(3))
    np.savez(folder / "few.npz", image=turned[:5], target=labels[:9])
    return folder


def test_a_model_learns_and_lines_tell(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    target = tmp_path / "t.ew"
    options = ("--validation", files / "held.npz", "--epochs", "3", "--lr", "2e-3")
    done = command("train", model, files / "train.npz", "-o", target, *options)
    assert done.returncode == 0, done.stderr
    first, *passes, last = done.stdout.splitlines()
    assert first == "training on 240 examples"
    assert [line.split(":")[0] for line in passes] == ["epoch 1", "epoch 2", "epoch 3"]
    assert "validation loss" in passes[0]
    assert last.startswith(f"{target}: 24 steps in ")
    with np.load(files / "held.npz") as held, ew.Session(target) as session:
        found = session(held["pictures"])
        assert isinstance(found, np.ndarray)
        assert (found.argmax(1) == held["target"]).mean() > 0.8


def test_what_was_resumed_is_what_was_never_interrupted(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    data, threads = files / "named.npz", ("--target", "digit", "--threads", "1")
    options = ("--schedule", "cosine", "--seed", "3", "--json", *threads)
    kept = ("--checkpoint", tmp_path / "c.ew", "--resume")
    whole, parts = tmp_path / "whole.ew", tmp_path / "parts.ew"
    done = command("train", model, data, "-o", whole, "--epochs", "3", *options)
    assert done.returncode == 0, done.stderr
    assert (
        command(
            "train", model, data, "-o", parts, "--epochs", "3", *options, *kept
        ).returncode
        == 0
    )
    figures = json.loads(done.stdout)
    assert [row["epoch"] for row in figures["epochs"]] == [1, 2, 3]
    assert figures["steps"] == 24
    again = command("train", model, data, "-o", parts, "--epochs", "5", *options, *kept)
    assert [row["epoch"] for row in json.loads(again.stdout)["epochs"]] == [4, 5]
    # The rates of the first three passes are over: cosine has come to its end.
    assert same(whole, parts)


def same(first: Path, second: Path) -> bool:
    others = ew.load(second).parameters()
    pairs = ew.load(first).parameters().items()
    return all(np.array_equal(value, others[name]) for name, value in pairs)


def test_the_step_may_go_into_the_file(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    target, data = tmp_path / "t.ew", files / "train.npz"
    options = ("--epochs", "1", "--optimizer", "sgd", "--trainable", "last:1")
    done = command("train", model, data, "-o", target, *options, "--with-step")
    assert done.returncode == 0, done.stderr
    one = Trainer(ew.load(target))
    assert one.steps == 8
    with np.load(data) as arrays:
        assert one.step(arrays["image"], arrays["target"]) > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("named.npz",), ("'target'", "--target")),
        (("none.npz",), ("none.npz",)),
        (("single.npz",), ("single.npz: targets: got a single one",)),
        (("few.npz",), ("few.npz: ", "got 5 examples; want 9 targets")),
        (("red.npz",), ("does not work with inputs",)),
        (("real.npz",), ("target", "'mse'")),
        (("far.npz",), ("got class 1", "0 to 9")),
        (("nan.npz",), ("loss is nan", "--lr")),
        (("train.npz", "--memory-budget", "1MB"), ("smallest",)),
        (("train.npz", "--loss", "l2"), ("loss='l2'", "cross_entropy")),
        (("train.npz", "--optimizer", "sdg"), ("--optimizer 'sdg'", "adamw")),
        (("train.npz", "--schedule", "up"), ("--schedule 'up'", "cosine")),
        (("train.npz", "--lr", "-1"), ("lr=-1.0",)),
        (("train.npz", "--trainable", "tail*"), ("'tail*'",)),
        (("train.npz", "--resume"), ("--checkpoint",)),
    ],
)
def test_what_is_wrong_is_one_line(
    command,
    model: Path,
    files: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    data, *options = arguments
    target = tmp_path / "t.ew"
    done = command("train", model, files / data, "-o", target, *options)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert [word for word in words if word not in line] == []
    assert not target.exists()


def test_files_that_are_read_are_not_written_over(
    command, model: Path, files: Path
) -> None:
    data = files / "train.npz"
    for options in (("-o", model), ("-o", data), ("-o", "x.ew", "--checkpoint", model)):
        done = command("train", model, data, *options)
        assert done.returncode == 2
        assert "would overwrite" in done.stderr


def test_what_cannot_be_written_is_refused_before_the_training(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    data, same = files / "train.npz", tmp_path / "t.ew"
    for options, words in (
        (("-o", tmp_path / "t.onnx"), ".ew file"),
        (("-o", tmp_path / "none" / "t.ew"), "no folder"),
        (("-o", same, "--checkpoint", same), "checkpoint"),
    ):
        done = command("train", model, data, *options)
        assert done.returncode == 2
        assert words in done.stderr
        assert "training" not in done.stdout


def test_a_training_that_was_done_says_so(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    kept = ("--checkpoint", tmp_path / "c.ew", "--resume", "--epochs", "1")
    arguments = ("train", model, files / "train.npz", "-o", tmp_path / "t.ew", *kept)
    command(*arguments)
    assert "all 1 passes were done before" in command(*arguments).stdout


def test_a_training_that_diverges_writes_nothing(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    target, kept = tmp_path / "t.ew", tmp_path / "c.ew"
    kept.write_bytes(b"what was there")
    options = ("--checkpoint", kept, "--optimizer", "sgd", "--lr", "1e30")
    done = command("train", model, files / "train.npz", "-o", target, *options)
    assert done.returncode == 2
    assert "the training has diverged" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not target.exists()
    assert kept.read_bytes() == b"what was there"
