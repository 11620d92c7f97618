"""Checkpoints: one ``.ew`` file with a model, arrays beside it, and facts."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeAlias

from edgewise.errors import CheckpointError, EdgewiseError
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.quant import config
from edgewise.types import DType, TensorType
from edgewise_trainer import losses, optimizers, schedules

KEY = "edgewise.trainer"
VERSION = 1
# What is read from a file that somebody damaged.
DAMAGED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    OverflowError,
)


def _kinds(module: ModuleType) -> dict[str, type]:
    return {
        cls.__name__: cls
        for cls in vars(module).values()
        if isinstance(cls, type) and dataclasses.is_dataclass(cls)
        if not cls.__name__.startswith("_")
    }


_LOSSES, _OTHERS = _kinds(losses), _kinds(optimizers) | _kinds(schedules)
_OTHERS |= _kinds(config)
_KINDS = _OTHERS | {
    f"losses.{name}" if name in _OTHERS else name: cls for name, cls in _LOSSES.items()
}
_NAMES = {cls: name for name, cls in _KINDS.items()}
# A model, arrays beside it, and what is known about both.
Contents: TypeAlias = "tuple[Model, dict[str, Array], dict[str, Any]]"


def save(
    path: str | os.PathLike[str],
    model: Model,
    states: Mapping[str, Array],
    facts: Mapping[str, Any],
) -> None:
    """Write a checkpoint: whole, or not at all.

    Raises:
        CheckpointError: It cannot be written, or something has no text form.
    """
    module = model.module
    variables = dict(module.variables)
    for key, array in states.items():
        info = VariableInfo(key, _type(array), Role.STATE, array)
        variables[key] = info
    text = json.dumps({"version": VERSION, **facts}, default=_described)
    metadata = {**module.metadata, KEY: text}
    try:
        Model(Module(module.functions, variables, metadata)).save(path)
    except EdgewiseError as error:
        raise CheckpointError(f"{path}: no checkpoint was written: {error}") from error


def load(path: str | os.PathLike[str]) -> Contents:
    """Model, states and facts of a checkpoint.

    Raises:
        CheckpointError: The file is damaged, is no checkpoint, or is too new.
    """
    return contents(opened(path))


def opened(path: str | os.PathLike[str]) -> Model:
    """The model in the file of a checkpoint, with all that it holds.

    Raises:
        CheckpointError: The file is damaged, or is no checkpoint.
    """
    try:
        model = Model.load(path)
    except EdgewiseError as error:
        raise CheckpointError(f"{path}: no checkpoint can be read: {error}") from error
    if KEY not in model.module.metadata:
        raise CheckpointError(f"{path}: a model, but no checkpoint of a trainer")
    return model


def contents(model: Model) -> Contents:
    """Model, states and facts of one that was a checkpoint.

    Raises:
        CheckpointError: It is damaged, or too new.
    """
    module = model.module
    facts = _facts(model.path or "the model", module.metadata[KEY])
    states = {
        key: info.initial
        for key, info in module.variables.items()
        if info.role is Role.STATE and info.initial is not None
    }
    kept = {k: v for k, v in module.variables.items() if k not in states}
    metadata = {k: v for k, v in module.metadata.items() if k != KEY}
    return Model(Module(module.functions, kept, metadata)), states, facts


def _facts(path: str, text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text, object_hook=_made)
    except (*DAMAGED, EdgewiseError) as error:
        raise CheckpointError(f"{path}: what the trainer wrote: {error}") from error
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        raise CheckpointError(f"{path}: want a checkpoint of version {VERSION}")
    return facts


def is_loss(value: object) -> bool:
    """Whether it is one of ``edgewise_trainer.losses``."""
    return isinstance(value, tuple(_LOSSES.values()))


def describes(value: object) -> bool:
    """Whether a checkpoint can hold it."""
    try:
        json.dumps(value, default=_described)
    except CheckpointError:
        return False
    return True


def _described(value: object) -> dict[str, Any]:
    """An optimizer, loss or schedule as its name and fields."""
    kind = _NAMES.get(type(value))
    if kind is None or not dataclasses.is_dataclass(value):
        raise CheckpointError(
            f"a checkpoint cannot hold a {type(value).__name__}; it holds optimizers, "
            "schedules and losses of edgewise_trainer"
        )
    fields = dataclasses.fields(value)
    return {"kind": kind, **{f.name: getattr(value, f.name) for f in fields}}


def _made(found: dict[str, Any]) -> Any:
    kind = found.pop("kind", None)
    if kind is None:
        return found
    if kind not in _KINDS:
        raise ValueError(f"there is no {kind}")
    named = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
    return _KINDS[kind](**named)


def _type(array: Array) -> TensorType:
    return TensorType(DType.of(array.dtype), array.shape)
