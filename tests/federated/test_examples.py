"""The examples of federated rounds do what their pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "federated"


@pytest.mark.slow
def test_a_head_of_its_own_beats_being_alone_and_being_one() -> None:
    line = [sys.executable, str(EXAMPLES / "shortcuts.py")]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    _, *rows = done.stdout.splitlines()
    alone, one, own = (float(row.split("%")[0].split()[-1]) for row in rows)
    assert one < 40 < alone
    assert own > alone + 4
