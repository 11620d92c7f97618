"""A training step in two halves: gradients of parts of a batch add up, and are spent.

``accumulate`` takes a part of the batch and adds its gradients, times what the part
counts, to their sums; ``apply`` divides the sums by what the whole batch counts and
moves the parameters.  Parts come in a fixed order, so that the result does not depend
on threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edgewise.ir.graph import (
    Graph,
    Input,
    Inputs,
    Node,
    Value,
    constant,
    input_value,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Role, VariableInfo
from edgewise.ops import Add, Cast, Div, Equal, Mul, Where
from edgewise.types import DType, TensorType
from edgewise_trainer.names import LOSS, RATE, STEP, WEIGHT
from edgewise_trainer.task import Step
from edgewise_trainer.terms import zeros


class Halves(NamedTuple):
    """A step in two halves.

    Attributes:
        accumulate: Inputs of the model and target to the loss and what it counts.
        apply: What the batch counts, rate and step number; gives nothing.
        sums: What lies between them; zeros before the first part.
    """

    accumulate: Graph
    apply: Graph
    sums: tuple[VariableInfo, ...]


def halves(step: Step) -> Halves:
    """The halves of a step whose gradients are known."""
    sums: dict[Value, VariableInfo] = {}
    for key, grad in step.grads.items():  # tied parameters may share one
        info = VariableInfo(f"{key}/gradient_sum", grad.type, Role.STATE)
        sums.setdefault(grad, info)
    own = step.grads.keys() | {info.key for info in step.states}
    spent = {key: value for key, value in step.graph.updates.items() if key in own}
    followed = {k: v for k, v in step.graph.updates.items() if k not in own}
    accumulate = _accumulate(step, sums, followed)
    return Halves(accumulate, _apply(step, sums, spent), tuple(sums.values()))


def _accumulate(
    step: Step, sums: Mapping[Value, VariableInfo], followed: Mapping[str, Value]
) -> Graph:
    graph, weight = step.graph, step.weight
    assert weight is not None  # noqa: S101 - who knows gradients knows it, too
    nothing = Equal()(weight, constant(np.zeros((), weight.type.dtype.numpy)))
    updates = {}
    for grad, info in sums.items():
        share = Mul()(grad, Cast(grad.type.dtype.value)(weight))
        # Where no example counts, the mean and its gradients are 0 / 0.
        share = Where()(nothing, zeros(share), share)
        updates[info.key] = Add()(variable_value(info.key, info.type), share)
    inputs = tuple(v for v in graph.inputs if _key(v) not in (RATE, STEP))
    outputs = (*graph.outputs, weight)
    updates |= followed
    return Graph(inputs, outputs, (LOSS, WEIGHT), updates, graph.binders)


def _apply(
    step: Step, sums: Mapping[Value, VariableInfo], spent: Mapping[str, Value]
) -> Graph:
    weight = input_value(WEIGHT, TensorType(DType.F32, ()))
    means = {}
    for grad, info in sums.items():
        count = Cast(grad.type.dtype.value)(weight)
        means[grad] = Div()(variable_value(info.key, info.type), count)

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        made = with_inputs(node, inputs)
        return tuple(means.get(Value(node, j), made[j]) for j in range(len(made)))

    clock = tuple(v for v in step.graph.inputs if _key(v) in (RATE, STEP))
    return Graph((weight, *clock), (), (), spent).rebuild(visit)


def _key(value: Value) -> str:
    return value.op.key if isinstance(value.op, Input) else ""
