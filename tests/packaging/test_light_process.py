"""A process that only runs a model imports nothing that a device should not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import edgewise as ew

DIGITS = Path(ew.__file__).parent / "demo_data" / "digits.onnx"
HEAVY = (
    "numba",
    "llvmlite",
    "onnx",
    "onnxruntime",
    "ml_dtypes",
    "scipy",
    "sklearn",
    "typer",
    "click",
    "rich",
    "edgewise.convert",
    "edgewise.kernels.native",
    "edgewise.runtime.pool",
    "edgewise.runtime.staged",
    "edgewise.cli",
    "edgewise.tools",
)
RUN = """
import json, sys
import numpy as np
import edgewise as ew
with ew.Session(sys.argv[1], ew.SessionConfig(threads=1)) as session:
    shape = session(np.zeros((2, 1, 8, 8), np.float32)).shape
heavy = [name for name in sys.argv[2:] if name in sys.modules]
print(json.dumps({"shape": shape, "heavy": heavy}))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("light") / "digits.ew"
    ew.convert(DIGITS).save(path)
    return path


def test_running_a_file_imports_nothing_heavy(model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, model, *HEAVY],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == {"shape": [2, 10], "heavy": []}


def test_importing_the_package_loads_no_engine() -> None:
    code = "import sys, edgewise; print(sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert "'numpy'" not in done.stdout
