"""What a trainer begins with, and how that is kept in a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from edgewise.errors import CheckpointError, ConfigError
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.quant.config import QuantizeConfig
from edgewise_trainer import checkpoint, losses
from edgewise_trainer.coded import codebooks
from edgewise_trainer.lora import Adapter
from edgewise_trainer.names import EVALUATE, TRAIN_STEP
from edgewise_trainer.optimizers import Optimizer, chosen
from edgewise_trainer.stand_ins import StandIn
from edgewise_trainer.task import Setting, Step, Task, Trainable, Way

TASK = "task"


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


def save(path: str | os.PathLike[str], start: Start) -> None:
    """Write a checkpoint: whole, or not at all.

    Its task and the function that evaluates it are written, too, where it has them.

    Raises:
        CheckpointError: It cannot be written, or something has no text form.
    """
    module = start.model.module
    facts = {
        **start.setting._asdict(),
        "steps": start.steps,
        "epoch": start.epoch,
        "batch": start.batch,
    }
    if start.task is not None:
        facts[TASK] = _described(start.task)
        module = module.with_function(TRAIN_STEP, start.task.step.graph)
    if start.score is not None:
        module = module.with_function(EVALUATE, start.score)
    checkpoint.save(path, Model(module), start.state, facts)


def start_of(
    model: Model,
    loss: str | losses.Loss | None,
    optimizer: Optimizer | None,
    trainable: Trainable | None,
    seed: int,
    quantize: QuantizeConfig | None = None,
) -> Start:
    """What one wrote into the model, unless something else is asked for.

    Raises:
        CheckpointError: What was written is damaged, or too new.
        ConfigError: There is no such loss, or no optimizer or model like that.
    """
    want_model(model)
    found = written(model)
    asked = (loss, optimizer, trainable, quantize)
    if found is not None and all(one is None for one in asked):
        return found
    setting = Setting(
        losses.found("cross_entropy" if loss is None else loss),
        chosen(optimizer),
        "all" if trainable is None else trainable,
        None,
        seed,
        quantize=quantize,
    )
    bare = model if found is None else found.model
    if quantize is not None:
        from edgewise_trainer.fake import ranged  # noqa: PLC0415 - who trains for bytes

        bare = ranged(bare, quantize)
    return Start(bare, setting)


def want_model(model: object) -> None:
    """Raise ``ConfigError`` where something else stands for a model."""
    if not isinstance(model, Model):
        raise ConfigError(
            f"model: got {type(model).__name__}; want what edgewise.load or "
            "edgewise.convert gives"
        )


def written(model: Model) -> Start | None:
    """What a trainer wrote into a model, if any did.

    Raises:
        CheckpointError: It is damaged, or too new.
    """
    if checkpoint.KEY not in model.module.metadata:
        return None
    bare, state, facts = checkpoint.contents(model)
    try:
        setting = _setting(facts)
        place = [int(facts[name]) for name in ("steps", "epoch", "batch")]
        task = _task(model.module, facts[TASK]) if TASK in facts else None
    except (KeyError, TypeError, ValueError) as error:
        where = model.path or "the model"
        raise CheckpointError(f"{where}: the trainer wrote no {error}") from error
    if task is None:
        return Start(bare, setting, None, None, state, *place)
    functions = dict(bare.module.functions)
    del functions[TRAIN_STEP]
    score = functions.pop(EVALUATE, None)
    module = Module(functions, bare.module.variables, bare.module.metadata)
    return Start(Model(module), setting, task, score, state, *place)


def _setting(facts: Mapping[str, Any]) -> Setting:
    known_facts = {name: facts[name] for name in Setting._fields if name in facts}
    setting = Setting(**known_facts)
    if setting.way is not None:
        setting = setting._replace(way=Way(*setting.way))
    known = hasattr(setting.optimizer, "lr")
    if not known or not (setting.loss is None or callable(setting.loss)):
        raise ValueError("optimizer or loss that there is")
    return setting


def _described(task: Task) -> dict[str, Any]:
    return {
        "trained": task.trained,
        "unreached": task.step.unreached,
        "states": [info.key for info in task.step.states],
        "adapters": [
            (own.weight, *(info.key for info in own.infos)) for own in task.adapters
        ],
    }


def _task(module: Module, facts: Mapping[str, Any]) -> Task:
    """A task that was saved with its functions."""
    infos = module.variables
    step = Step(
        module.functions[TRAIN_STEP],
        tuple(infos[key] for key in facts["states"]),
        tuple(facts["unreached"]),
    )
    adapters = tuple(_stand_in(module, *names) for names in facts["adapters"])
    return Task(tuple(facts["trained"]), adapters, step)


def _stand_in(module: Module, weight: str, *keys: str) -> StandIn:
    """Two factors, or the values of a codebook."""
    if len(keys) > 1:
        a, b = (module.variables[key] for key in keys)
        return Adapter(weight, a, b)
    (book,) = codebooks(module, (weight,))
    return book
