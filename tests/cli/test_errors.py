"""What users see when something is wrong: one line, exit 2."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import edgewise.cli
from edgewise import ops
from edgewise.dims import symbol
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.types import DType, TensorType


def assert_one_line(done, *words: object) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert [word for word in words if str(word) not in line] == []


def test_a_truncated_file(command, model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.ew"
    broken.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    for name in ("run", "inspect", "bench", "profile", "compare"):
        assert_one_line(command(name, broken), broken)


def test_a_foreign_file(command, tmp_path: Path) -> None:
    foreign = tmp_path / "picture.ew"
    foreign.write_bytes(b"\x89PNG\r\n" * 100)
    assert_one_line(command("run", foreign), foreign)


def test_a_file_that_is_not_there(command, tmp_path: Path) -> None:
    for name in ("run", "inspect", "convert"):
        assert_one_line(command(name, tmp_path / "none.ew"), tmp_path / "none.ew")


def test_an_onnx_file_that_is_none(command, tmp_path: Path) -> None:
    source = tmp_path / "text.onnx"
    source.write_text("this is not a model")
    assert_one_line(command("convert", source), source)


def test_an_onnx_file_where_an_ew_file_is_wanted(
    command, digits: Path, tmp_path: Path
) -> None:
    renamed = tmp_path / "digits.ew"
    renamed.write_bytes(digits.read_bytes())
    assert_one_line(command("inspect", digits), digits, "edgewise convert")
    assert_one_line(command("run", renamed), renamed, "edgewise convert")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of images of any size from 3 on."""
    x = input_value("x", TensorType(DType.F32, (1, symbol("H"), 9, 1)))
    y = ops.AveragePool((3, 3), (1, 1), (0, 0, 0, 0), (1, 1), False)(x)
    path = tmp_path_factory.mktemp("images") / "images.ew"
    Model(Module({"infer": Graph((x,), (y,), ("y",))}, {})).save(path)
    return path


def test_open_sizes_that_are_too_small_ask_for_others(command, images: Path) -> None:
    for name in ("run", "inspect", "bench", "profile", "compare"):
        assert_one_line(command(name, images), "taken to be 1: H", "--size H=64")
        assert command(name, images, "--size", "H=5").returncode == 0
    assert "--size" not in command("run", images, "--size", "H=2").stderr


def test_sizes_beyond_the_machine(command, images: Path) -> None:
    for size in ("99999999999999", "9223372036854775807"):
        done = command("run", images, "--size", f"H={size}")
        assert_one_line(done, "'x'", size, "want smaller sizes")


def test_an_input_of_another_shape(command, model: Path, tmp_path: Path) -> None:
    inputs = tmp_path / "in.npz"
    np.savez(inputs, image=np.zeros((1, 3, 8, 8), np.float32))
    assert_one_line(command("run", model, "--inputs", inputs), "image", "3")


def test_a_missing_input(command, model: Path, tmp_path: Path) -> None:
    inputs = tmp_path / "in.npz"
    np.savez(inputs, picture=np.zeros((1, 1, 8, 8), np.float32))
    for name in ("run", "compare"):
        assert_one_line(command(name, model, "--inputs", inputs), "image")


def test_inputs_that_are_no_arrays(command, model: Path, tmp_path: Path) -> None:
    inputs = tmp_path / "in.npz"
    for content in (b"nothing", b""):
        inputs.write_bytes(content)
        assert_one_line(command("run", model, "--inputs", inputs), inputs)


def test_an_unwritable_target(command, digits: Path, tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "digits.ew"
    assert_one_line(command("convert", digits, "-o", target), target)


@pytest.mark.parametrize("threads", [0, -1, 1_000_000])
def test_absurd_thread_counts(command, model: Path, threads: int) -> None:
    assert_one_line(command("run", model, "--threads", threads), "threads", threads)


@pytest.mark.parametrize("size", ["N", "N=", "=3", "N=x", "N=-1", "M=2", "N=2,M"])
def test_sizes_that_mean_nothing(command, model: Path, size: str) -> None:
    assert_one_line(
        command("run", model, "--size", size), size.split("=", maxsplit=1)[0]
    )


def test_debug_adds_the_traceback(command, tmp_path: Path) -> None:
    for arguments in (("--debug", "run"), ("run", "--debug")):
        done = command(*arguments, tmp_path / "none.ew")
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.strip().splitlines()[-1].startswith("edgewise: ")


def test_a_log_level_that_does_not_exist(
    command, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "EDGEWISE_LOG", "LOUD")
    assert_one_line(command("run", model), "EDGEWISE_LOG", "LOUD")


def test_arrays_that_are_not_there(command, model: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.npz"
    done = command("run", model, "--inputs", missing)
    assert_one_line(done, missing, "cannot be read")


def test_a_fault_of_ours_is_one_line_too(monkeypatch, capsys) -> None:
    def broken(command: str) -> None:
        raise ZeroDivisionError(f"two\nlines of {command}")

    monkeypatch.setattr("edgewise.cli.app.app", broken)
    monkeypatch.setattr("sys.argv", ["edgewise", "doctor"])
    with pytest.raises(SystemExit) as stopped:
        edgewise.cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        "edgewise: ZeroDivisionError: two lines of doctor"
        " (a bug in edgewise; --debug shows where)\n"
    )
