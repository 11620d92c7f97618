"""Mutants of good files, tried by ``fuzz.py`` with limits on memory and time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FUZZ = Path(__file__).with_name("fuzz.py")
KINDS = ("onnx-bytes", "onnx-fields", "ew-bytes")
MOST = 2048  # megabytes of a process that tries small models


def fuzzed(kind: str, *options: object) -> dict[str, Any]:
    command = [sys.executable, str(FUZZ), kind, *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    total: dict[str, Any] = json.loads(done.stdout)
    return total


def want_good(total: dict[str, Any], count: int) -> None:
    assert not total["odd"], "\n".join(total["odd"])
    assert total["mutants"] == count
    assert total["megabytes"] < MOST
    # Were all refused, nothing behind the first check would have been tried.
    assert total["ran"] + total["accepted"] >= count // 50


@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_refused_or_run(kind: str) -> None:
    want_good(fuzzed(kind, "--count", 300), 300)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutants_of_every_operator_are_refused_or_run(kind: str) -> None:
    want_good(fuzzed(kind, "--count", 20_000, "--first", 1000, "--wide"), 20_000)
