"""Saving is whole or not at all, and says why not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from edgewise.errors import EdgewiseError
from edgewise.format import write as writing
from edgewise.format.read import check, read
from edgewise.format.write import write
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.types import DType, TensorType

F32 = DType.F32
# A module of 4 MB, for the scripts that are stopped while they write it.
BIG = """
import os, resource, signal, sys
import numpy as np
from edgewise.errors import EdgewiseError
from edgewise.format import write as writing
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.types import DType, TensorType

array = np.ones(1 << 20, np.float32)
info = VariableInfo("w", TensorType(DType.F32, array.shape), Role.PARAMETER, array)
big = Module({}, {"w": info})
"""


def small(value: float = 1.0) -> Module:
    array = np.full(100, value, np.float32)
    info = VariableInfo("w", TensorType(F32, (100,)), Role.PARAMETER, array)
    return Module({}, {"w": info})


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BIG + textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_saved_file_replaces_the_old_one_and_leaves_nothing_else(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.ew"
    write(small(1), path)
    write(small(2), path)
    check(path)
    initial = read(path).variables["w"].initial
    assert initial is not None
    assert initial[0] == 2
    assert names(tmp_path) == ["m.ew"]


def test_a_map_of_the_old_file_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    write(small(1), path)
    old = read(path).variables["w"].initial
    write(small(2), path)
    assert old is not None
    assert (old == 1).all()


def test_a_loaded_module_can_be_written_over_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    write(small(), path)
    before = path.read_bytes()
    write(read(path), path)
    assert path.read_bytes() == before


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    write(small(), path)
    before = path.read_bytes()
    done = run(
        """
        def dying(chunks):
            for index, chunk in enumerate(chunks):
                yield chunk
                if index == 1:
                    os.kill(os.getpid(), signal.SIGKILL)

        whole = writing._chunks
        writing._chunks = lambda module: dying(whole(module))
        writing.write(big, sys.argv[1])
        """,
        path,
    )
    assert done.returncode == -9, done.stderr
    assert path.read_bytes() == before
    assert len(names(tmp_path)) == 2  # what it had written so far
    write(small(2.0), tmp_path / "other.ew")
    assert len(names(tmp_path)) == 3  # for the next who writes to that name
    write(small(2.0), path)
    assert sorted(names(tmp_path)) == ["m.ew", "other.ew"]


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    script = """
        def slow(chunks):
            for index, chunk in enumerate(chunks):
                yield chunk
                if index == 0:
                    print("begun", flush=True)
                    sys.stdin.read()

        whole = writing._chunks
        writing._chunks = lambda module: slow(whole(module))
        writing.write(big, sys.argv[1])
    """
    line = [sys.executable, "-c", BIG + textwrap.dedent(script), str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        write(small(), path)
        assert len(names(tmp_path)) == 2
        other.communicate("")
    assert other.returncode == 0
    assert names(tmp_path) == ["m.ew"]
    assert read(path).variables["w"].type.shape == (1 << 20,)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.ew"
    write(small(), path)
    before = path.read_bytes()
    done = run(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            writing.write(big, sys.argv[1])
        except EdgewiseError as error:
            sys.exit(f"refused: {error}")
        """,
        path,
    )
    assert done.stderr.strip() == f"refused: {path}: cannot be written: File too large"
    assert path.read_bytes() == before
    assert names(tmp_path) == ["m.ew"]


def test_an_interrupt_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: object) -> Module:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(small(), tmp_path / "m.ew")
    assert names(tmp_path) == []


@pytest.mark.parametrize("place", ["missing/m.ew", "file/m.ew", ".", "x" * 300])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("no folder")
    path = tmp_path / place
    with pytest.raises(EdgewiseError, match=re.escape(f"{path}: cannot be written: ")):
        write(small(), path)
    assert names(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EdgewiseError, match="cannot be written: Permission denied"):
        write(small(), tmp_path / "m.ew")


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(EdgewiseError, match="no regular file"):
        write(small(), path)
    assert path.is_fifo()


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.ew"
    link.symlink_to(tmp_path / "real" / "m.ew")
    write(small(), link)
    assert link.is_symlink()
    check(tmp_path / "real" / "m.ew")


def test_a_link_to_itself_is_named(tmp_path: Path) -> None:
    link = tmp_path / "loop.ew"
    link.symlink_to(link)
    with pytest.raises(EdgewiseError, match=r"loop\.ew: cannot be written"):
        write(small(), link)
    assert link.is_symlink()


def test_a_path_with_a_null_is_named() -> None:
    with pytest.raises(EdgewiseError, match="cannot be written: embedded null"):
        write(small(), "a\0b")
    with pytest.raises(EdgewiseError, match="cannot be read: embedded null"):
        read("a\0b")


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write(small(), tmp_path / "m.ew")
    (tmp_path / "plain").write_text("")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_module_that_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    x = input_value("x", TensorType(F32, (2,)))
    twice = Module({"infer": Graph((x,), (x, x), ("y", "y"))}, {})
    path = tmp_path / "m.ew"
    with pytest.raises(EdgewiseError, match="the output name 'y' is given twice"):
        write(twice, path)
    assert names(tmp_path) == []
