"""What a trainer holds, as a module: given other parameters, and as it has learned."""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_trainer.coded import Codebook, settled
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


def learned(
    module: Module, task: Task, live: Mapping[str, Array], *, averaged: bool
) -> Model:
    """The module with what its variables hold now, adapters merged, in real numbers."""
    changed = task.step.graph.updates
    if averaged:
        live = averages(live, changed)
    whole = merged(as_now(module, live, changed), task.adapters, live)
    return Model(settled(whole, task.trained))
