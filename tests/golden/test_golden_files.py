"""Files of every released version, which must load for ever."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from edgewise.format.read import check, read
from edgewise.format.write import write_bytes

FOLDER = Path(__file__).parents[2] / "schema" / "golden"
GOLDEN = sorted(FOLDER.glob("*.ew"))
describe = runpy.run_path(str(FOLDER / "make.py"))["describe"]


def test_there_are_golden_files() -> None:
    assert [path.stem for path in GOLDEN][:1] == ["v1"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_it_reads_as_it_did_when_it_was_written(path: Path) -> None:
    check(path)
    assert describe(read(path)) == path.with_suffix(".txt").read_text()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_what_is_read_can_be_written_and_read_again(path: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.ew"
    again.write_bytes(write_bytes(read(path)))
    check(again)
    assert describe(read(again)) == path.with_suffix(".txt").read_text()
