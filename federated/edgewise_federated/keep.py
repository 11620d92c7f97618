"""A run on disk: whole after each round, so that a killed one goes on to the bit."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import CheckpointError
from edgewise.format.whole import replace
from edgewise.ir.op import Array

NAME = "federated.npz"
FACTS = "facts"


class Kept(NamedTuple):
    """What a run is made of between two rounds.

    Attributes:
        facts: Plain values: the round, the history, what the run was asked.
        arrays: By name: the model, what server and devices remember.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]


def save(folder: str | os.PathLike[str], kept: Kept) -> None:
    """Write a run: whole, or not at all.

    Raises:
        CheckpointError: It cannot be written.
    """
    place = Path(folder)
    text = np.frombuffer(json.dumps(kept.facts).encode(), np.uint8)
    try:
        place.mkdir(parents=True, exist_ok=True)
        arrays = {FACTS: text, **kept.arrays}
        replace(place / NAME, lambda file: np.savez(file, allow_pickle=False, **arrays))
    except OSError as error:
        raise CheckpointError(f"{place}: the run cannot be kept: {error}") from error


def load(folder: str | os.PathLike[str]) -> Kept | None:
    """The run in a folder; None where there is none.

    Raises:
        CheckpointError: It is damaged.
    """
    path = Path(folder) / NAME
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        facts = json.loads(arrays.pop(FACTS).tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path}: damaged: {error}") from error
    if not isinstance(facts, dict):
        raise CheckpointError(f"{path}: damaged: its facts are none")
    return Kept(facts, arrays)


def part_of(arrays: Mapping[str, Array], owner: str) -> dict[str, Array]:
    """What is called ``owner/...``, without that."""
    start = f"{owner}/"
    return {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
