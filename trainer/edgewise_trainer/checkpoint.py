"""Checkpoints: one ``.ew`` file with model, optimizer and the place in the data."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from edgewise.errors import CheckpointError, EdgewiseError
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.types import DType, TensorType
from edgewise_trainer import losses, optimizers, schedules
from edgewise_trainer.lora import Adapter
from edgewise_trainer.names import EVALUATE, TRAIN_STEP
from edgewise_trainer.task import Setting, Step, Task

KEY = "edgewise.trainer"
VERSION = 1
_KINDS = {
    cls.__name__: cls
    for module in (losses, optimizers, schedules)
    for cls in vars(module).values()
    if isinstance(cls, type) and dataclasses.is_dataclass(cls)
    if not cls.__name__.startswith("_")
}


class Start(NamedTuple):
    """What a trainer begins with.

    Attributes:
        model: What is trained, without adapters.
        setting: What was asked for.
        task: What is done for it, where that is known already.
        score: The function that evaluates the model, likewise.
        state: What is remembered beside the parameters.
        steps: Optimizer steps done.
        epoch: Passes done.
        batch: Batches done of the next one.
    """

    model: Model
    setting: Setting
    task: Task | None = None
    score: Graph | None = None
    state: Mapping[str, Array] = {}
    steps: int = 0
    epoch: int = 0
    batch: int = 0


def save(
    path: str | os.PathLike[str],
    start: Start,
) -> None:
    """Write a checkpoint: whole, or not at all.

    Args:
        path: The file.
        start: What a trainer goes on with; its task and the function that evaluates it
            are written, too, where it has them.

    Raises:
        CheckpointError: It cannot be written, or something has no text form.
    """
    module = start.model.module
    variables = dict(module.variables)
    for key, array in start.state.items():
        info = VariableInfo(key, _type(array), Role.STATE, array)
        variables[key] = info
    text = json.dumps(_described_start(start), default=_described)
    metadata = {**module.metadata, KEY: text}
    functions = dict(module.functions)
    if start.task is not None:
        functions[TRAIN_STEP] = start.task.step.graph
    if start.score is not None:
        functions[EVALUATE] = start.score
    try:
        Model(Module(functions, variables, metadata)).save(path)
    except EdgewiseError as error:
        raise CheckpointError(f"{path}: no checkpoint was written: {error}") from error


def load(path: str | os.PathLike[str]) -> Model:
    """The model of a checkpoint, which a trainer can begin with.

    Raises:
        CheckpointError: The file is damaged, or no checkpoint.
    """
    try:
        model = Model.load(path)
    except EdgewiseError as error:
        raise CheckpointError(f"{path}: no checkpoint can be read: {error}") from error
    if KEY not in model.module.metadata:
        raise CheckpointError(f"{path}: a model, but no checkpoint of a trainer")
    return model


def start_of(model: Model) -> Start | None:
    """What a trainer wrote into a model, if any did.

    Raises:
        CheckpointError: It is damaged, or too new.
    """
    text = model.module.metadata.get(KEY)
    return None if text is None else _start(model, text)


def _described_start(start: Start) -> dict[str, Any]:
    task = start.task
    facts = {
        "version": VERSION,
        **start.setting._asdict(),
        "steps": start.steps,
        "epoch": start.epoch,
        "batch": start.batch,
    }
    if task is not None:
        facts["task"] = {
            "trained": task.trained,
            "unreached": task.step.unreached,
            "states": [info.key for info in task.step.states],
            "adapters": [(x.weight, x.a.key, x.b.key) for x in task.adapters],
        }
    return facts


def _start(model: Model, text: str) -> Start:
    where, module = model.path or "the model", model.module
    facts = _facts(where, text)
    state = {
        key: info.initial
        for key, info in module.variables.items()
        if info.role is Role.STATE and info.initial is not None
    }
    variables = {k: v for k, v in module.variables.items() if k not in state}
    metadata = {k: v for k, v in module.metadata.items() if k != KEY}
    added = {TRAIN_STEP, EVALUATE} if "task" in facts else set()
    functions = {k: v for k, v in module.functions.items() if k not in added}
    bare = Model(Module(functions, variables, metadata))
    try:
        setting = _setting(facts)
        place = {name: int(facts[name]) for name in ("steps", "epoch", "batch")}
        task = _task(module, facts["task"]) if "task" in facts else None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{where}: the trainer wrote no {error}") from error
    score = module.functions.get(EVALUATE) if task is not None else None
    return Start(bare, setting, task, score, state, **place)


def _setting(facts: Mapping[str, Any]) -> Setting:
    setting = Setting(**{name: facts[name] for name in Setting._fields})
    known = hasattr(setting.optimizer, "lr")
    if not known or not (setting.loss is None or callable(setting.loss)):
        raise ValueError("optimizer or loss that there is")
    return setting


def _task(module: Module, facts: Mapping[str, Any]) -> Task:
    """A task that was saved with its functions."""
    infos = module.variables
    step = Step(
        module.functions[TRAIN_STEP],
        tuple(infos[key] for key in facts["states"]),
        tuple(facts["unreached"]),
    )
    adapters = (Adapter(w, infos[a], infos[b]) for w, a, b in facts["adapters"])
    return Task(tuple(facts["trained"]), tuple(adapters), step)


def _facts(path: str, text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text, object_hook=_made)
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path}: what the trainer wrote: {error}") from error
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
        raise CheckpointError(f"{path}: want a checkpoint of version {VERSION}")
    return facts


def describes(value: object) -> bool:
    """Whether a checkpoint can hold it."""
    return _KINDS.get(type(value).__name__) is type(value)


def _described(value: object) -> dict[str, Any]:
    """An optimizer, loss or schedule as its name and fields."""
    kind = type(value).__name__
    if not describes(value) or not dataclasses.is_dataclass(value):
        raise CheckpointError(
            f"a checkpoint cannot hold a {kind}; it holds optimizers, schedules and "
            "losses of edgewise_trainer"
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
