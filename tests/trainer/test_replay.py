"""The memory of examples: their bytes, which of them stay, and its file."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise_trainer.incremental import ReplayMemory
from edgewise_trainer.incremental.codec import Codec
from edgewise_trainer.incremental.store import Blocks

SLACK = 65_536  # of SQLite: the schema, a journal, a page that was begun


def images(count: int, shape: tuple[int, ...] = (1, 4, 4)) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(count)
    return {"x": rng.standard_normal((count, *shape)).astype(np.float32)}


@pytest.mark.parametrize("shape", [(1,), (3, 5), (1, 8, 8), ()])
def test_real_inputs_come_back_to_half_a_step(shape: tuple[int, ...]) -> None:
    x = images(7, shape)["x"] * np.float32(10.0) + np.float32(3.0)
    y = np.arange(7)
    codec = Codec.of({"x": x}, y)
    inputs, target = codec.decode(codec.encode({"x": x}, y))
    flat = x.reshape(7, -1)
    step = (flat.max(1) - flat.min(1)) / 255
    gap = np.abs(inputs["x"].reshape(7, -1) - flat).max(1)
    assert (gap <= 0.5 * step + 1e-5).all()
    assert inputs["x"].dtype == np.float32
    np.testing.assert_array_equal(target, y)


def test_a_constant_and_extremes_come_back() -> None:
    x = np.array([[5.0, 5.0], [-3e38, 3e38], [0.0, 0.0]], np.float32)
    codec = Codec.of({"x": x}, np.zeros(3, np.int64))
    inputs, _ = codec.decode(codec.encode({"x": x}, np.zeros(3, np.int64)))
    np.testing.assert_allclose(inputs["x"], x, rtol=1e-6)


def test_whole_numbers_and_targets_are_exact() -> None:
    inputs = {"ids": np.array([[1, 2**31 - 1], [-5, 0]]), "on": np.array([True, False])}
    target = np.array([[0.1, 1e-30], [np.pi, -1.0]], np.float32)
    codec = Codec.of(inputs, target)
    found, wanted = codec.decode(codec.encode(inputs, target))
    np.testing.assert_array_equal(found["ids"], inputs["ids"])
    np.testing.assert_array_equal(found["on"], inputs["on"])
    np.testing.assert_array_equal(wanted, target)
    assert found["ids"].dtype == np.int64
    assert Codec.parsed(codec.text()) == codec


def test_what_cannot_be_coded_is_refused() -> None:
    memory = ReplayMemory(1000, "balanced")
    with pytest.raises(ew.EdgewiseError, match="not finite"):
        memory.add({"x": np.array([[np.nan]], np.float32)}, np.zeros(1, np.int64))
    memory = ReplayMemory(1000, "balanced")
    with pytest.raises(ew.EdgewiseError, match="32 bits"):
        memory.add({"x": np.array([2**40])}, np.zeros(1, np.int64))
    memory = ReplayMemory(10, "balanced")
    with pytest.raises(ew.EdgewiseError, match="no example fits"):
        memory.add(images(1), np.zeros(1, np.int64))
    memory = ReplayMemory(1000, "balanced")
    memory.add(images(2), np.zeros(2, np.int64))
    with pytest.raises(ew.ShapeError, match="it holds"):
        memory.add(images(2, (5,)), np.zeros(2, np.int64))


def test_a_reservoir_keeps_every_example_with_the_same_chance() -> None:
    """The mean number of those that stay is 10 of 40 everywhere (Vitter, 1985)."""
    stayed = np.zeros(40)
    x = np.arange(40, dtype=np.int32)
    for seed in range(400):
        memory = ReplayMemory(10 * 8, "reservoir", seed=seed)
        for part in np.split(np.arange(40), 8):
            memory.add({"x": x[part]}, np.zeros(5, np.int64))
        inputs, _ = memory.everything()
        stayed[inputs["x"]] += 1
    assert len(memory) == 10
    # The standard deviation of a mean over 400 is 0.022.
    np.testing.assert_allclose(stayed / 400, 0.25, atol=0.09)


def test_classes_share_a_full_memory_alike() -> None:
    memory = ReplayMemory(30 * 8, "balanced")
    counts = {0: 500, 1: 40, 2: 12, 3: 4}
    for kind, count in counts.items():
        x = np.arange(count, dtype=np.int32)
        memory.add({"x": x}, np.full(count, kind))
    assert memory.classes[3] == 4  # all that there were
    assert len(memory) == memory.capacity == 30
    others = [memory.classes[kind] for kind in (0, 1, 2)]
    assert max(others) - min(others) <= 1


def test_a_sample_has_no_example_twice_and_is_what_was_given() -> None:
    memory = ReplayMemory(10_000, "balanced")
    x = np.arange(50, dtype=np.int32)
    memory.add({"x": x}, x % 3)
    inputs, target = memory.sample(30, np.random.default_rng(0))
    assert len(set(inputs["x"].tolist())) == 30
    np.testing.assert_array_equal(target, inputs["x"] % 3)
    assert len(memory.sample(99, np.random.default_rng(0))[1]) == 50


@pytest.mark.parametrize(
    ("shape", "limit"),
    [
        ((1, 8, 8), 20_000),
        ((3,), 5_000),
        ((2080,), 50_000),
        ((3, 32, 32), 100_000),
        ((5000,), 200_000),
        ((60_000,), 400_000),
    ],
)
def test_a_store_stays_within_its_limit(
    tmp_path: Path, shape: tuple[int, ...], limit: int
) -> None:
    memory = ReplayMemory(limit, "balanced", tmp_path / "m.db")
    most = 0
    for number in range(6):
        count = max(400_000 // int(np.prod(shape)) // 6, 3)
        memory.add(images(count, shape), np.arange(count) % (number + 1))
        most = max(most, sum(file.stat().st_size for file in tmp_path.iterdir()))
    assert most <= limit + SLACK
    size = memory._rows.dtype.itemsize
    assert len(memory) == memory.capacity
    assert memory.capacity * size >= limit // 2 - size
    assert memory.capacity * size <= limit


def test_a_store_keeps_what_was_put_into_it(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    one = ReplayMemory(8_000, "balanced", path)
    for number in range(5):
        one.add(images(40), np.full(40, number))
    one.close()
    two = ReplayMemory(8_000, "balanced", path)
    assert two.classes == one.classes
    (x, y), (again, targets) = one.everything(), two.everything()
    np.testing.assert_array_equal(again["x"], x["x"])
    np.testing.assert_array_equal(targets, y)
    two.add(images(7), np.full(7, 9))
    assert 9 in two.classes


def test_two_learners_cannot_write_to_one_store(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    one = ReplayMemory(8_000, "balanced", path)
    one.add(images(4), np.arange(4))
    two = ReplayMemory(8_000, "balanced", path)
    one.add(images(4), np.arange(4))
    with pytest.raises(ew.CheckpointError, match="another learner"):
        two.add(images(4), np.arange(4))


@pytest.mark.parametrize("damage", ["cut", "noise", "other", "text"])
def test_a_damaged_store_is_one_error(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "m.db"
    memory = ReplayMemory(20_000, "balanced", path)
    memory.add(images(400), np.arange(400) % 4)
    memory.close()
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "noise":
        data[4096:12288] = bytes(8192)
    elif damage == "other":
        data = data[:60] + b"\0\0\0\x07" + data[64:]  # another user_version
    else:
        data = bytearray(b"no database at all, but a text of some length" * 9)
    path.write_bytes(data)
    with pytest.raises(ew.CheckpointError, match=r"m\.db"):
        ReplayMemory(20_000, "balanced", path).everything()


WRITER = """
import sys, numpy as np
from pathlib import Path
from edgewise_trainer.incremental import ReplayMemory
memory = ReplayMemory(20_000, "balanced", Path(sys.argv[1]))
number = 0
while True:
    x = np.full((8, 64), number % 251, np.float32)
    x[:, 0], x[:, 1] = 0.0, 255.0
    memory.add({"x": x}, np.full(8, number % 251))
    number += 1
    if number == 60:
        print("ready", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.13])
def test_a_killed_process_loses_its_last_batch_at_most(
    tmp_path: Path, delay: float
) -> None:
    path = tmp_path / "m.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 20_000 + SLACK
    memory = ReplayMemory(20_000, "balanced", path)
    inputs, target = memory.everything()
    assert len(memory) == memory.capacity
    # Whole examples: every one is of its class throughout.
    found = np.rint(inputs["x"][:, 2:])
    np.testing.assert_array_equal(found, np.broadcast_to(target[:, None], found.shape))
    memory.add({"x": inputs["x"][:3]}, target[:3])


def test_blocks_fill_their_pages() -> None:
    for record in (8, 76, 1000, 2100, 3096, 4095, 10_000):
        blocks = Blocks.within(record, 1_000_000)
        assert blocks.capacity * record >= 0.75 * 1_000_000, record
