"""The training step as one graph: forward, backward, update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.errors import TrainabilityError
from edgewise.ir.graph import (
    Graph,
    Value,
    Variable,
    constant,
    input_value,
    variable_value,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.types import DType, TensorType
from edgewise_trainer.around import optimizer_of, prepared
from edgewise_trainer.autodiff import backward
from edgewise_trainer.form import trainable_form
from edgewise_trainer.losses import Loss, scalar_loss, target_type, weight_of
from edgewise_trainer.names import LOSS, RATE, STEP, TARGET
from edgewise_trainer.rounding import bounded
from edgewise_trainer.task import Step
from edgewise_trainer.terms import zeros
from edgewise_trainer.update import Clock, Optimizer


def training_step(
    module: Module, trained: Sequence[str], loss: Loss, optimizer: Optimizer
) -> Step:
    """Forward, backward and update of ``trained`` parameters.

    Raises:
        TrainabilityError: An op on the way to one of them has no gradient, or the loss
            depends on none.
    """
    form = trainable_form(module, trained)
    output = form.graph.outputs[0]
    target = input_value(TARGET, target_type(loss, output.type))
    value = scalar_loss(loss, output, target, form.graph.inputs)
    places = places_of(Graph((), (value,), (LOSS,)), trained)
    seed = constant(np.ones((), value.type.dtype.numpy))
    grads = backward({value: seed}, list(places.values()))
    found = {key: grads[place] for key, place in places.items() if place in grads}
    for key in form.absorbed.keys() & set(trained) - found.keys():
        places[key] = form.absorbed[key]
        found[key] = zeros(places[key])
    if not found:
        raise TrainabilityError("the loss depends on none of the parameters to train")
    clock = Clock(
        input_value(RATE, TensorType(DType.F32, ())),
        input_value(STEP, TensorType(DType.F64, ())),
    )
    updates, states = _updates(places, found, optimizer, clock)
    inputs = (*form.graph.inputs, target, *clock)
    updates |= form.statistics
    # What the form of the model itself follows, such as ranges of images.
    known = {k: v for k, v in form.graph.updates.items() if is_statistic(module, k)}
    updates |= known
    graph = Graph(inputs, (value,), (LOSS,), updates, form.graph.binders)
    missing = tuple(key for key in trained if key not in found)
    weight = weight_of(loss, output, target)
    return Step(graph, states, missing, found, weight)


def is_statistic(module: Module, key: str) -> bool:
    """Whether a variable follows what a model sees."""
    return module.variables[key].role is Role.STATISTIC


def places_of(graph: Graph, trained: Sequence[str]) -> dict[str, Value]:
    """Where each parameter is read: one value each, in the order of the graph."""
    wanted = set(trained)
    return {
        node.op.key: Value(node)
        for node in graph.nodes()
        if isinstance(node.op, Variable) and node.op.key in wanted
    }


def _updates(
    places: dict[str, Value],
    grads: dict[str, Value],
    optimizer: Optimizer,
    clock: Clock,
) -> tuple[dict[str, Value], tuple[VariableInfo, ...]]:
    updates: dict[str, Value] = {}
    states: list[VariableInfo] = []
    grads = prepared(optimizer, bounded(grads))
    # The gradients of the last layers come first, and free what they read.
    for key, grad in reversed(grads.items()):
        parameter, own = places[key], optimizer_of(optimizer, key)
        infos = {
            slot: VariableInfo(f"{key}/{slot}", parameter.type, Role.STATE)
            for slot in own.slots
        }
        slots = {slot: variable_value(i.key, i.type) for slot, i in infos.items()}
        updates[key], new = own.update(parameter, grad, slots, clock)
        updates |= {infos[slot].key: value for slot, value in new.items()}
        states += infos.values()
    return updates, tuple(states)
