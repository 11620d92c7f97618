"""What a trainer holds, as a module: given other parameters, and as it has learned."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.quant.config import QuantizeConfig
from edgewise_trainer.coded import Codebook, settled
from edgewise_trainer.rounding import plain
from edgewise_trainer.stand_ins import merged
from edgewise_trainer.task import Task
from edgewise_trainer.values import as_now, averages, given


def holding(
    old: Module, task: Task, values: Mapping[str, Array]
) -> tuple[Module, dict[str, Array]]:
    """The module with other parameters, and what stands in for those.

    Raises:
        ConfigError: There is no such parameter.
        ShapeError: An array has another shape.
    """
    new, states = given(old, values), dict[str, Array]()
    for own in task.adapters:
        whole = new.variables[own.weight].initial
        if own.weight in values and whole is not None:
            states |= own.begun(whole)
        if isinstance(own, Codebook):  # who shares a value was read off the first
            new.variables[own.weight] = old.variables[own.weight]
    return new, states


def begun_anew(module: Module, config: QuantizeConfig | None) -> Module:
    """The module without what was found for its quantisation, if it is for one."""
    if config is None:
        return module
    from edgewise_trainer import small_numbers  # noqa: PLC0415 - who trains so

    return small_numbers.begun(plain(Model(module)), config).module


def quantized(model: Model, config: QuantizeConfig | None) -> Model:
    """The model as it was trained to be.

    Raises:
        ConfigError: Ranges are not known before the first step.
    """
    if config is None:
        return model
    from edgewise_trainer import small_numbers  # noqa: PLC0415 - who trains so

    return small_numbers.exported(model, config)


def learned(
    module: Module, task: Task, live: Mapping[str, Array], *, averaged: bool
) -> Model:
    """The module with what its variables hold now, adapters merged, in real numbers."""
    changed = task.step.graph.updates
    if averaged:
        live = averages(live, changed)
    whole = merged(as_now(module, live, changed), task.adapters, live)
    return Model(settled(whole, task.trained))
