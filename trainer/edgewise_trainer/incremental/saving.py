"""A learner in a file: model, memory, importances, measures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import CheckpointError, EdgewiseError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_trainer import checkpoint
from edgewise_trainer.incremental.classes import class_count
from edgewise_trainer.incremental.ewc import Past
from edgewise_trainer.incremental.knowledge import Knowledge
from edgewise_trainer.incremental.methods import parsed
from edgewise_trainer.incremental.store import Contents
from edgewise_trainer.incremental.stream import Examples
from edgewise_trainer.selection import selected
from edgewise_trainer.update import want_optimizer
from edgewise_trainer.wanted import want_count, want_from_0, want_kinds, want_number

LEARNER = "learner"
_PREFIX = "edgewise.learner"
FACTS = {
    "methods",
    "loss",
    "optimizer",
    "trainable",
    "replay_bytes",
    "stored",
    "max_drop",
    "best",
    "rows",
    "tasks",
    "seed",
}
_PARTS = ("anchors", "importances")


class Saved(NamedTuple):
    """What a file of a learner holds.

    Attributes:
        known: What it knows.
        facts: Options and counters, by name: ``FACTS``.
        replay: Examples of the past; None where there are none, or a store has them.
        probes: A sample of every task.
        keep: Inputs and targets of the keep-set, if there is one.
    """

    known: Knowledge
    facts: dict[str, Any]
    replay: Contents | None
    probes: list[Contents]
    keep: Examples | None


def save(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write a learner: whole, or not at all.

    Raises:
        CheckpointError: It cannot be written, or has a loss or an optimizer of yours.
    """
    known, facts, replay, probes, keep = saved
    arrays: dict[str, Array] = {}
    for part, held in zip(_PARTS, known.past, strict=True):
        arrays |= {f"{_PREFIX}/{part}/{key}": array for key, array in held.items()}
    memories = {f"probe{number}": probe for number, probe in enumerate(probes)}
    if replay is not None:
        memories["replay"] = replay
    for name, contents in memories.items():
        records = np.frombuffer(contents.records, np.uint8)
        arrays[f"{_PREFIX}/memory/{name}"] = records
    if keep is not None:
        inputs, target = keep
        arrays |= {f"{_PREFIX}/keep/{key}": array for key, array in inputs.items()}
        arrays[f"{_PREFIX}/target"] = target
    texts = {
        name: {"codec": found.codec, "seen": found.seen}
        for name, found in memories.items()
    }
    seen = None if known.seen is None else sorted(known.seen)
    found = {**facts, "seen": seen, "cut": known.cut, "memories": texts}
    checkpoint.save(path, known.whole, arrays, {LEARNER: found})


def load(path: str | os.PathLike[str]) -> Saved:
    """What ``save`` wrote.

    Raises:
        CheckpointError: The file is damaged, or is no learner.
    """
    model, arrays, facts = checkpoint.load(path)
    if LEARNER not in facts:
        raise CheckpointError(
            f"{path}: a checkpoint, but not of an incremental learner"
        )
    try:
        return _saved(model, arrays, dict(facts[LEARNER]))
    except (*checkpoint.DAMAGED, EdgewiseError) as error:
        raise CheckpointError(f"{path}: what the learner wrote: {error!r}") from error


def _saved(model: Model, arrays: Mapping[str, Array], facts: dict[str, Any]) -> Saved:
    missing = FACTS - facts.keys()
    if missing:
        raise KeyError(*sorted(missing))
    _want(facts)
    held = (_below(arrays, part) for part in _PARTS)
    seen = facts.pop("seen")
    classes = None if seen is None else frozenset(map(int, seen))
    if classes and not classes <= set(range(class_count(model))):
        raise ValueError("classes that the model has")
    known = Knowledge(model, classes, Past(*held), facts.pop("cut"))
    selected(known.learning.module, facts["trainable"])  # what is there to learn
    memories = {
        name: Contents(
            text["codec"],
            {int(kind): int(count) for kind, count in text["seen"].items()},
            arrays[f"{_PREFIX}/memory/{name}"].tobytes(),
        )
        for name, text in facts.pop("memories").items()
    }
    replay = memories.pop("replay", None)
    for contents in (*memories.values(), *([] if replay is None else [replay])):
        if min(contents.seen.values(), default=0) < 0:
            raise ValueError("examples that were seen")
    probes = [memories[f"probe{number}"] for number in range(len(memories))]
    if len(probes) != len(facts["rows"]):
        raise ValueError("rows for all tasks")
    target = arrays.get(f"{_PREFIX}/target")
    keep = None if target is None else (_below(arrays, "keep"), target)
    return Saved(known, facts, replay, probes, keep)


def _want(facts: Mapping[str, Any]) -> None:
    """Raise ``ConfigError``, or what Python does, unless facts are what was saved."""
    parsed(facts["methods"])
    want_optimizer(facts["optimizer"])
    if not checkpoint.is_loss(facts["loss"]) or not isinstance(facts["stored"], bool):
        raise ValueError("there is no such loss, or no such store")
    if not isinstance(facts["trainable"], str):
        want_kinds("trainable", facts["trainable"], str, "names")
    for name in ("replay_bytes", "tasks", "seed"):
        want_count(name, facts[name], 0)
    want_from_0("max_drop", facts["max_drop"])
    if facts["best"] is not None:
        want_number("best", facts["best"])
    want_kinds("rows", facts["rows"], list, "rows of numbers")
    for row in facts["rows"]:
        want_kinds("rows", row, Real, "numbers")
    if [len(row) for row in facts["rows"]] != list(range(1, len(facts["rows"]) + 1)):
        raise ValueError("rows that do not belong together")


def _below(arrays: Mapping[str, Array], part: str) -> dict[str, Array]:
    """Arrays under a name, without it."""
    start = f"{_PREFIX}/{part}/"
    return {
        key.removeprefix(start): array
        for key, array in arrays.items()
        if key.startswith(start)
    }
