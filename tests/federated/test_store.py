"""What a device remembers on its disk, through orders that come again or were lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew
from edgewise_federated.device import Memory
from edgewise_federated.store import Remembered, Store, begun


def memory(number: int) -> Memory:
    array = np.full(3, number, np.float32)
    return Memory({"w": array}, array + 100, array + 200)


OLD, NEW = memory(1), memory(2)
KEPT = Remembered("run", 5, OLD, NEW)


@pytest.mark.parametrize(
    ("run", "number", "used", "want"),
    [
        ("run", 6, 5, NEW),  # its answer was used
        ("run", 6, 4, Memory(NEW.personal, OLD.control, OLD.lost)),  # it was not
        ("run", 5, 4, OLD),  # the server died and asks again
        ("other", 1, 0, Memory(NEW.personal)),  # what is personal outlives a run
    ],
)
def test_what_an_order_begins_with(
    run: str, number: int, used: int, want: Memory
) -> None:
    found = begun(KEPT, run, number, used)
    assert found.arrays().keys() == want.arrays().keys()
    for name, array in want.arrays().items():
        np.testing.assert_array_equal(found.arrays()[name], array)


def test_what_is_kept_comes_back_to_the_bit(tmp_path: Path) -> None:
    store = Store(tmp_path / "device")
    with store.locked():
        assert store.load() is None
        odd = Memory({"a/b": np.array([np.nan, -0.0, 1e-45], np.float32)})
        store.save(Remembered("run", 7, odd, NEW))
        found = store.load()
    assert found is not None
    assert (found.run, found.number) == ("run", 7)
    assert found.before.personal["a/b"].tobytes() == odd.personal["a/b"].tobytes()
    assert found.before.control is None
    np.testing.assert_array_equal(found.after.lost, NEW.lost)


def test_nobody_else_reads_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "device")
    with store.locked():
        pass
    assert (tmp_path / "device").stat().st_mode & 0o77 == 0


def test_damage_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(KEPT)
    (tmp_path / "federated.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ew.CheckpointError, match="damaged"):
        store.load()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ew.CheckpointError, match="file"),
        Store(tmp_path / "file" / "device").locked(),
    ):
        pass


COUNT = """
import sys
from pathlib import Path
from edgewise_federated.device import Memory
from edgewise_federated.store import Remembered, Store

store = Store(Path(sys.argv[1]))
for _ in range(20):
    with store.locked():
        old = store.load()
        number = 0 if old is None else old.number
        store.save(Remembered("run", number + 1, Memory({}), Memory({})))
"""


def test_two_processes_do_not_lose_what_the_other_wrote(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    found = Store(tmp_path).load()
    assert found is not None
    assert found.number == 40
