"""Every command, on the network that the package ships."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

COMMANDS = (
    "demo",
    "convert",
    "inspect",
    "run",
    "bench",
    "profile",
    "compare",
    "quantize",
    "compress",
    "doctor",
    "personalize",
    "federate",
    "train",
)


def test_the_command_alone_lists_what_there_is(command) -> None:
    done = command("--help")
    assert done.returncode == 0
    assert [name for name in COMMANDS if name not in done.stdout] == []


def test_help_is_short_too(command) -> None:
    for arguments in (("-h",), ("run", "-h")):
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
        assert "--debug" in done.stdout or "--inputs" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(command, name: str) -> None:
    done = command(name, "--help")
    assert done.returncode == 0
    assert f"Example: edgewise {name}" in done.stdout


def test_convert_writes_a_file_that_runs(command, digits: Path, tmp_path: Path) -> None:
    target = tmp_path / "digits.ew"
    done = command("convert", digits, "-o", target, "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["bytes"] == target.stat().st_size
    assert figures["source_bytes"] == digits.stat().st_size
    assert command("run", target).returncode == 0


def test_convert_writes_onnx_again(command, digits: Path, tmp_path: Path) -> None:
    here, back, again = (tmp_path / name for name in ("a.ew", "b.onnx", "c.ew"))
    for arguments in ((digits, here), (here, back), (back, "-o", again)):
        done = command("convert", *arguments)
        assert done.returncode == 0, done.stderr
    assert command("run", again).returncode == 0
    done = command("convert", here, tmp_path / "none" / "b.onnx")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_convert_keeps_the_original_unless_it_is_named(
    command, digits: Path, model: Path, tmp_path: Path
) -> None:
    original, copy = tmp_path / "net.onnx", tmp_path / "net.ew"
    original.write_bytes(digits.read_bytes())
    copy.write_bytes(model.read_bytes())
    done = command("convert", copy)
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert original.read_bytes() == digits.read_bytes()
    assert command("convert", copy, original).returncode == 0


def test_convert_can_fix_the_shape_of_an_input(
    command, digits: Path, tmp_path: Path
) -> None:
    target = tmp_path / "fixed.ew"
    done = command("convert", digits, "-o", target, "--shape", "image=4,1,8,8")
    assert done.returncode == 0, done.stderr
    done = command("run", target, "--json")
    assert json.loads(done.stdout)["outputs"][0]["shape"] == [4, 10]


def test_inspect_shows_inputs_and_functions(command, model: Path) -> None:
    done = command("inspect", model)
    assert done.returncode == 0, done.stderr
    for word in ("image", "logits", "infer", "prepare"):
        assert word in done.stdout
    figures = json.loads(command("inspect", model, "--json").stdout)
    assert figures["bytes"] == model.stat().st_size
    assert figures["inputs"][0] == {
        "name": "image",
        "dtype": "f32",
        "shape": ["N", 1, 8, 8],
    }


def test_inspect_says_that_the_bytes_are_right(command, model: Path) -> None:
    assert f"{model}: every byte is as it was written" in command(
        "inspect", model, "--check"
    ).stdout.replace("\n", "")
    assert json.loads(command("inspect", model, "--check", "--json").stdout)


def test_run_reads_inputs_and_writes_outputs(
    command, model: Path, tmp_path: Path
) -> None:
    inputs, outputs = tmp_path / "in.npz", tmp_path / "out"
    np.savez(inputs, image=np.zeros((3, 1, 8, 8), np.float32))
    done = command("run", model, "--inputs", inputs, "--outputs", outputs)
    assert done.returncode == 0, done.stderr
    logits = np.load(outputs)["logits"]
    assert logits.shape == (3, 10)
    np.testing.assert_array_equal(logits, np.broadcast_to(logits[:1], (3, 10)))


def test_random_inputs_depend_on_the_seed_only(command, model: Path) -> None:
    first, again = (command("run", model, "--json").stdout for _ in range(2))
    other = command("run", model, "--json", "--seed", "1").stdout
    assert first == again
    assert first != other


def test_run_takes_an_onnx_file_too(command, digits: Path) -> None:
    done = command("run", digits, "--json", "--size", "N=5")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outputs"][0]["shape"] == [5, 10]


def test_bench_prints_ordered_figures(command, model: Path) -> None:
    done = command("bench", model, "--json", "--runs", "9", "--threads", "1")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["runs"] == 9
    assert 0 < figures["min_ms"] <= figures["median_ms"] <= figures["p90_ms"]
    assert figures["arena_bytes"] > 0
    assert command("bench", model, "--runs", "2").returncode == 0


def test_profile_shows_steps_and_writes_a_trace(
    command, model: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.json"
    done = command("profile", model, "--runs", "2", "--trace", trace)
    assert done.returncode == 0, done.stderr
    assert "conv" in done.stdout
    assert json.loads(trace.read_text())
    rows = json.loads(command("profile", model, "--json").stdout)["rows"]
    assert {"op", "kernel", "seconds"} <= rows[0].keys()


def test_compare_finds_nothing_wrong(command, model: Path, digits: Path) -> None:
    done = command("compare", model, "--size", "N=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "first bad: none" in done.stdout
    report = json.loads(command("compare", model, "--onnx", digits, "--json").stdout)
    assert report["first_bad"] is None
    assert [row["name"] for row in report["rows"]] == ["logits"]


def test_doctor_finds_nothing_wrong(command) -> None:
    done = command("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["problems"] == []
    assert report["cores"] >= 1
    assert report["kernels"]["level"]
    assert command("doctor").returncode == 0


def test_the_demo_reads_digits_and_learns(command) -> None:
    done = command("demo", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["accuracy"] >= 0.97
    assert figures["images"] == 360
    assert figures["latency_seconds"] > 0
    together = figures["federate"]
    assert together["before"] < 0.6
    assert together["after"] > 0.85
    assert 0 < together["upload_bytes"] < together["download_bytes"] / 3


def test_the_demo_prints_a_table(command) -> None:
    done = command("demo")
    assert done.returncode == 0, done.stderr
    assert "99.72%" in done.stdout


def test_a_reader_that_goes_away_ends_a_command_quietly(model: Path) -> None:
    for arguments in (["inspect", str(model), "--ops"], ["inspect", str(model)]):
        line = [sys.executable, "-m", "edgewise", *arguments]
        with subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.close()
            errors = process.stderr.read() if process.stderr else ""
        assert errors == ""
        assert process.returncode == -signal.SIGPIPE


def test_tables_keep_to_the_columns_that_are_asked_for(model: Path) -> None:
    line = [sys.executable, "-m", "edgewise", "inspect", str(model)]
    done = subprocess.run(
        line,
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "50"},
    )
    assert max(map(len, done.stdout.splitlines())) <= 50


def test_multiply_adds_are_those_of_the_sizes_that_are_asked_for(
    command, model: Path
) -> None:
    def total(*sizes: str) -> int:
        done = command("inspect", model, "--ops", *sizes)
        return int(done.stdout.split()[-1].replace(",", ""))

    assert total("--size", "N=3") == 3 * total() > 0
