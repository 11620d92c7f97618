"""``edgewise personalize``: what it writes, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise.tools.demo import held_out
from edgewise_trainer.demo import SLANT, slanted


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's digits, digits that are known, and digits with wrong labels."""
    folder = tmp_path_factory.mktemp("digits")
    images, labels = held_out()
    mine, some, rest = slice(0, 50), slice(50, 130), slice(130, 360)
    own = slanted(images, SLANT)
    np.savez(folder / "mine.npz", image=own[mine], target=labels[mine])
    np.savez(folder / "some.npz", image=images[some], target=labels[some])
    np.savez(folder / "rest.npz", image=images[rest], target=labels[rest])
    np.savez(folder / "own.npz", image=own[rest], target=labels[rest])
    wrong = (labels[mine].astype(np.int64) + 1) % 10
    np.savez(folder / "wrong.npz", image=images[mine], label=wrong)
    return folder


def accuracy(model: Path, path: Path) -> float:
    with np.load(path) as file, ew.Session(model) as session:
        found = session(file["image"])
        assert isinstance(found, np.ndarray)
        return float((found.argmax(1) == file["target"]).mean())


def test_a_user_is_learned_and_the_rest_stays(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    target = tmp_path / "mine.ew"
    known = ("--remember", files / "some.npz", "--keep", files / "rest.npz")
    arguments = (files / "mine.npz", *known, "--max-drop", "0.05", "-o", target)
    done = command("personalize", model, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["accepted"]
    assert figures["file"] == str(target)
    assert figures["replay"] == 130
    assert (
        accuracy(target, files / "own.npz") > accuracy(model, files / "own.npz") + 0.2
    )
    assert accuracy(target, files / "rest.npz") == figures["after"]["accuracy"] > 0.95


def test_what_would_do_harm_is_not_written(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    target = tmp_path / "mine.ew"
    wrong = (files / "wrong.npz", "--target", "label", "--keep", files / "rest.npz")
    done = command("personalize", model, *wrong, "-o", target)
    assert done.returncode == 2
    assert "'label'" in done.stderr
    with np.load(files / "rest.npz") as file:
        keep = tmp_path / "keep.npz"
        np.savez(keep, image=file["image"], label=file["target"])
    wrong = (files / "wrong.npz", "--target", "label", "--keep", keep)
    done = command("personalize", model, *wrong, "-o", target)
    assert done.returncode == 1, done.stderr
    assert "refused" in done.stdout
    assert not target.exists()


def test_a_store_is_there_the_next_time(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.ew", tmp_path / "b.ew"
    store = ("--store", tmp_path / "m.db", "--epochs", "2", "--json")
    done = command("personalize", model, files / "some.npz", *store, "-o", first)
    assert json.loads(done.stdout)["replay"] == 80
    done = command("personalize", first, files / "mine.npz", *store, "-o", second)
    assert json.loads(done.stdout)["replay"] == 130


def test_files_that_do_not_fit_are_named(
    command, model: Path, files: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.zeros(2), target=np.zeros(2))
    done = command("personalize", model, tmp_path / "two.npz", "-o", tmp_path / "x.ew")
    assert done.returncode == 2
    assert "no array for input 'image'" in done.stderr
    done = command("personalize", model, files / "mine.npz", "-o", model)
    assert done.returncode == 2
    assert "would overwrite" in done.stderr
