"""What a trainer begins with, and how that is kept in a checkpoint."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from edgewise.errors import CheckpointError, ConfigError, EdgewiseError
from edgewise.ir.graph import Graph, Input, Variable
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model, want_model
from edgewise.quant.config import QuantizeConfig
from edgewise_trainer import checkpoint, losses
from edgewise_trainer.checkpoint import DAMAGED
from edgewise_trainer.coded import codebooks
from edgewise_trainer.evaluation import scored
from edgewise_trainer.lora import Adapter
from edgewise_trainer.names import (
    EVALUATE,
    INFER,
    LOSS,
    RATE,
    STEP,
    TARGET,
    TRAIN_STEP,
)
from edgewise_trainer.optimizers import Optimizer, chosen
from edgewise_trainer.stand_ins import StandIn
from edgewise_trainer.task import Setting, Step, Task, Trainable, Way
from edgewise_trainer.update import want_optimizer
from edgewise_trainer.wanted import want_count, want_kinds

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
        goes_on: Whether another trainer has begun, so that no state may be missing.
    """

    model: Model
    setting: Setting
    task: Task | None = None
    score: Graph | None = None
    state: Mapping[str, Array] = {}
    steps: int = 0
    epoch: int = 0
    batch: int = 0
    goes_on: bool = False


def with_step(start: Start, task: Task, infer: Graph, score: Graph | None) -> Start:
    """A start with its step, and with the function that evaluates the model.

    Args:
        start: Without them.
        task: The step.
        infer: What the model gives.
        score: How it is evaluated, where the loss is not known.
    """
    setting = start.setting
    if setting.loss is not None:
        score = scored(infer, setting.loss)
        if not checkpoint.describes(setting.loss):
            setting = setting._replace(loss=None)
    return start._replace(setting=setting, task=task, score=score)


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
    want_count("seed", seed, 0)
    found = written(model)
    if INFER not in (model if found is None else found.model).module.functions:
        raise ConfigError(f"{model.path or 'the model'}: has no function {INFER!r}")
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
        from edgewise_trainer import small_numbers  # noqa: PLC0415 - who trains so

        bare = small_numbers.begun(bare, quantize)
    return Start(bare, setting)


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
        place = [facts[name] for name in ("steps", "epoch", "batch")]
        for name, number in zip(("steps", "epoch", "batch"), place, strict=True):
            want_count(name, number, 0)
        task = _task(model.module, facts[TASK]) if TASK in facts else None
        _want_readable(bare.module, task)
    except (*DAMAGED, EdgewiseError) as error:
        where = model.path or "the model"
        raise CheckpointError(f"{where}: the trainer wrote no {error}") from error
    if task is None:
        return Start(bare, setting, None, None, state, *place)._replace(goes_on=True)
    functions = dict(bare.module.functions)
    del functions[TRAIN_STEP]
    score = functions.pop(EVALUATE, None)
    module = Module(functions, bare.module.variables, bare.module.metadata)
    return Start(Model(module), setting, task, score, state, *place)._replace(
        goes_on=True
    )


def _setting(facts: Mapping[str, Any]) -> Setting:
    known_facts = {name: facts[name] for name in Setting._fields if name in facts}
    setting = Setting(**known_facts)
    want_optimizer(setting.optimizer)
    if setting.loss is not None and not checkpoint.is_loss(setting.loss):
        raise ValueError("loss that there is")
    setting.size(setting.batch_size)
    want_count("seed", setting.seed, 0)
    if not isinstance(setting.quantize, QuantizeConfig | None):
        raise ValueError("way to quantize that there is")  # noqa: TRY004 - of a file
    if not isinstance(setting.trainable, str):
        want_kinds("trainable", setting.trainable, str, "names")
    if setting.memory_budget is None:
        return setting._replace(way=None)
    want_count("memory_budget", setting.memory_budget)
    if setting.way is not None:
        way = Way(*setting.way)
        want_count("segments", way.segments)
        if way.examples is not None:
            want_count("examples", way.examples)
        setting = setting._replace(way=way)
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
    infos, graph = module.variables, module.functions[TRAIN_STEP]
    keys = {value.op.key for value in graph.inputs if isinstance(value.op, Input)}
    if graph.output_names != (LOSS,) or not {TARGET, RATE, STEP} <= keys:
        raise ValueError("step that trains")
    step = Step(
        graph,
        tuple(infos[key] for key in facts["states"]),
        tuple(facts["unreached"]),
    )
    for names in (facts["trained"], facts["unreached"], facts["states"]):
        want_kinds("names", names, str, "names")
    adapters = tuple(_stand_in(module, *names) for names in facts["adapters"])
    return Task(tuple(facts["trained"]), adapters, step)


def _stand_in(module: Module, weight: str, *keys: str) -> StandIn:
    """Two factors, or the values of a codebook."""
    if len(keys) > 1:
        a, b = (module.variables[key] for key in keys)
        return Adapter(weight, a, b)
    (book,) = codebooks(module, (weight,))
    return book


def _want_readable(bare: Module, task: Task | None) -> None:
    """Raise ``ValueError`` unless the model and its step find what they read."""
    if INFER in bare.functions:
        _want_variables(bare.functions[INFER], bare.variables)
    if task is None:
        return
    absent = set(task.trained) - bare.variables.keys()
    if absent:
        raise ValueError(f"parameter {min(absent)!r} that is trained")
    own = {info.key: info for info in task.step.states}
    _want_variables(task.step.graph, {**bare.variables, **own})
    for adapter in task.adapters:
        if isinstance(adapter, Adapter):
            _want_factors(adapter, bare.variables)


def _want_variables(graph: Graph, infos: Mapping[str, VariableInfo]) -> None:
    """Raise ``ValueError`` unless there is all that a function reads."""
    for node in graph.nodes():
        if isinstance(node.op, Variable):
            info = infos.get(node.op.key)
            if info is None or (info.type,) != node.types:
                raise ValueError(f"variable {node.op.key!r} as it is read")


def _want_factors(adapter: Adapter, infos: Mapping[str, VariableInfo]) -> None:
    """Raise ``ValueError`` unless the product of factors is like their weight."""
    rows, columns = adapter.a.type.dims, adapter.b.type.dims
    weight = infos[adapter.weight].type.dims
    fitting = len(rows) == 2 <= len(columns) and rows[1] == columns[-2]
    each = math.prod(columns[:-2]) * rows[0] * columns[-1] if fitting else 0
    if not fitting or each != math.prod(weight):
        raise ValueError(f"factors that fit {adapter.weight!r}")
