"""What learners and their stores must refuse, and what they must get over."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.trainer.small import X, Y, small

import edgewise as ew
from edgewise.ir.module import Module
from edgewise_trainer import checkpoint
from edgewise_trainer.incremental import IncrementalLearner
from edgewise_trainer.incremental.memory import ReplayMemory

NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def model() -> ew.Model:
    return small()


def test_a_learner_learns_in_another_thread(model: ew.Model, tmp_path: Path) -> None:
    learner, found = IncrementalLearner(model, store=tmp_path / "s", threads=1), []
    worker = threading.Thread(target=lambda: found.append(learner.learn((X, Y))))
    worker.start()
    worker.join()
    learner.close()
    assert found[0].accepted


def test_examples_of_which_some_do_not_count_come_back(
    model: ew.Model, tmp_path: Path
) -> None:
    with_store = {"store": tmp_path / "s", "threads": 1}
    first = IncrementalLearner(model, **with_store)  # type: ignore[arg-type]
    first.learn((X, np.append(Y[:5], -100)))
    first.close()
    second = IncrementalLearner(model, **with_store)  # type: ignore[arg-type]
    assert second.classes == (0, 1, 2)
    assert second.learn((X, Y)).accepted
    second.close()


def test_a_class_that_would_take_all_memory_is_refused(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="want class numbers below"):
        IncrementalLearner(model, threads=1).learn((X, np.append(Y[:5], 10**9)))


@pytest.mark.parametrize("size", [-1, None, "x", 10**30])
def test_a_memory_of_no_size_is_refused(size: Any) -> None:
    with pytest.raises(ew.ConfigError, match="replay_bytes"):
        ReplayMemory(size, "balanced").add({"x": X}, Y)


@pytest.mark.parametrize(
    "array",
    [np.array(["a"] * 6, object), np.float32(3), X[:2], np.full((6, 2), 1e300)],
)
def test_what_a_memory_cannot_hold_is_refused(array: Any) -> None:
    with pytest.raises(ew.EdgewiseError, match="replay"):
        ReplayMemory(10_000, "balanced").add({"x": array}, Y)


def test_replayed_images_of_another_size_are_refused(model: ew.Model) -> None:
    learner = IncrementalLearner(model, threads=1)
    learner.learn((X, Y))
    with pytest.raises(ew.ShapeError, match="it holds"):
        learner.learn((np.zeros((6, 1, 9, 9), np.float32), Y))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cut", "last:9"),
        ("cut", "nowhere"),
        ("cut", []),
        ("trainable", ["zz"]),
        ("trainable", "last:9"),
        ("seen", [9]),
        ("seen", [-1]),
    ],
)
def test_a_learner_of_odd_facts_is_one_error(
    model: ew.Model, tmp_path: Path, name: str, value: Any
) -> None:
    path = tmp_path / "l.ew"
    learner = IncrementalLearner(model, threads=1)
    learner.learn((X, Y))
    learner.save(path)
    module = ew.load(path).module
    facts = json.loads(module.metadata[checkpoint.KEY])
    facts["learner"][name] = value
    metadata = {**module.metadata, checkpoint.KEY: json.dumps(facts)}
    ew.Model(Module(module.functions, module.variables, metadata)).save(path)
    with pytest.raises(ew.CheckpointError):
        IncrementalLearner.resume(path, threads=1)


DAMAGE = [
    """UPDATE memory SET seen = '{"0": 1e400}'""",
    """UPDATE memory SET seen = '{"0": -5}'""",
    "UPDATE memory SET turn = 'x'",
    "UPDATE block SET id = id + 5",
    "UPDATE block SET records = 'text'",
    "UPDATE block SET records = zeroblob(length(records))",
    "UPDATE block SET records = substr(records, 1, length(records) - 1)",
    "UPDATE block SET records = x''",
    """UPDATE memory SET codec = '[["x", "U5", [1]], ["target", "int64", []]]'""",
    """UPDATE memory SET codec = '[["target", "int64", []]]'""",
    """UPDATE memory SET codec = '[["x", "f4", [1e400]], ["target", "i8", []]]'""",
    "UPDATE memory SET codec = replace(hex(zeroblob(50000)), '0', '[')",
    "UPDATE memory SET seen = replace(hex(zeroblob(50000)), '0', '[')",
]


@pytest.mark.parametrize("statement", DAMAGE, ids=lambda text: str(text)[:60])
def test_a_damaged_store_is_one_error(
    model: ew.Model, tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "s"
    learner = IncrementalLearner(model, store=path, threads=1)
    learner.learn((X, Y))
    learner.close()
    file = sqlite3.connect(path)
    file.execute(statement)
    file.commit()
    file.close()
    with pytest.raises(ew.CheckpointError):
        IncrementalLearner(model, store=path, threads=1)


def test_what_a_full_disk_refused_is_written_later(tmp_path: Path) -> None:
    memory = ReplayMemory(200_000, "balanced", tmp_path / "s")
    memory.add({"x": X}, Y)
    many, classes = np.concatenate([X] * 20), np.concatenate([Y] * 20)
    assert memory._store is not None
    (pages,) = memory._store._file.execute("PRAGMA page_count").fetchone()
    memory._store._file.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ew.CheckpointError, match="full"):
        memory.add({"x": many}, classes)
    memory._store._file.execute("PRAGMA max_page_count = 1000")
    memory.add({"x": X}, Y)
    memory.close()
    again = ReplayMemory(200_000, "balanced", tmp_path / "s")
    assert len(again) == len(memory) == 132
    np.testing.assert_array_equal(again.everything()[1], memory.everything()[1])
    again.close()


def test_of_two_that_begin_a_store_the_second_is_told(tmp_path: Path) -> None:
    first, second = (ReplayMemory(9_000, "balanced", tmp_path / "s") for _ in "ab")
    first.add({"x": X}, Y)
    with pytest.raises(ew.CheckpointError, match="another learner"):
        second.add({"x": X}, Y)
    first.close()
    second.close()
