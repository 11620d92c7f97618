"""The command in a process of its own, as users call it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import edgewise as ew

Command: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
DIGITS = Path(ew.__file__).parent / "demo_data" / "digits.onnx"


@pytest.fixture(scope="session")
def command() -> Command:
    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "edgewise", *map(str, arguments)]
        return subprocess.run(
            line, check=False, capture_output=True, text=True, timeout=120
        )

    return call


@pytest.fixture(scope="session")
def digits() -> Path:
    """The shipped ONNX file."""
    return DIGITS


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped network, converted."""
    path = tmp_path_factory.mktemp("cli") / "digits.ew"
    ew.convert(DIGITS).save(path)
    return path
