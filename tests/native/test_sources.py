"""The names under which compiled objects are kept."""

from __future__ import annotations

import os
import subprocess
import sys

from edgewise.kernels import levels, sources

KEY = """
from edgewise.kernels import levels, sources
print(sources.object_key("cast", levels.LEVELS["x86-64-v3"]))
"""


def test_an_object_has_one_name_in_every_process() -> None:
    names = {
        subprocess.run(
            [sys.executable, "-c", KEY],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(names) == 1


def test_levels_have_objects_of_their_own() -> None:
    found = {sources.object_key("cast", level) for level in levels.LEVELS.values()}
    assert len(found) == len(levels.LEVELS)


def test_an_object_depends_on_the_catalogue_tables_it_reads() -> None:
    files = {file.parent.name + "/" + file.name for file in sources._closure("cast")}
    assert {"native/cast.py", "catalog/elementwise.py"} <= files
