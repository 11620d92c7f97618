"""Classes of a model: those not seen yet are masked, and new ones join the head."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model, Packing
from edgewise.ops import Linear, PackPanels, Where
from edgewise.types import TensorType
from edgewise_trainer.names import INFER
from edgewise_trainer.terms import scalar

# Far below every logit, and still a number: a smoothed loss multiplies it.
NEVER = -1e9

MOST = 1 << 20  # classes: a head of more is a mistake, and takes all memory


def class_count(model: Model) -> int:
    """Classes of the first output: its axis 1.

    Raises:
        ConfigError: Only a run knows how many.
    """
    shape = model.module.functions[INFER].outputs[0].type.shape
    if len(shape) < 2 or not isinstance(shape[1], int):
        raise ConfigError(
            f"{model.outputs[0].name!r}: want an output [N, classes], not "
            f"{model.outputs[0].shape}"
        )
    return shape[1]


def masked(model: Model, seen: Collection[int]) -> Model:
    """The model among the classes ``seen``: the others are never the answer."""
    count = class_count(model)
    if len(seen) == count:
        return model
    graph = model.module.functions[INFER]
    first, *rest = graph.outputs
    flags = np.zeros((1, count, *(1,) * (first.type.rank - 2)), np.bool_)
    flags[0, sorted(seen)] = True
    never = (
        NEVER if first.type.dtype.numpy.itemsize > 2 else np.finfo(np.float16).min / 2
    )
    among = Where()(constant(flags), first, scalar(float(never), first))
    outputs = (among, *rest)
    binders = graph.binders
    fresh = Graph(graph.inputs, outputs, graph.output_names, graph.updates, binders)
    return Model(model.module.with_function(INFER, fresh))


class Growth(NamedTuple):
    """How the head of a model gets more classes.

    Attributes:
        axes: Parameters that grow, each with its axis of classes.
        more: Classes to be added.
    """

    axes: dict[str, int]
    more: int

    def of(self, key: str, array: Array) -> Array:
        """An array like parameter ``key``, with zeros for the new classes."""
        if key not in self.axes:
            return array
        sizes = [(0, 0)] * array.ndim
        sizes[self.axes[key]] = (0, self.more)
        return np.pad(array, sizes)


def growth(model: Model, classes: int) -> Growth | None:
    """What must grow for the model to have ``classes`` classes; None: nothing.

    Raises:
        ConfigError: The model does not end with a linear layer of parameters.
    """
    count = classes - class_count(model)
    if count <= 0:
        return None
    if classes > MOST:
        raise ConfigError(f"{classes} classes: want class numbers below {MOST}")
    module = model.module
    node = module.functions[INFER].outputs[0].node
    axes: dict[str, int] = {}
    if isinstance(node.op, Linear):
        _, weight, *rest = node.inputs
        scale, shift, residual = (*rest, None, None, None)[:3]
        plain = scale is None and residual is None
        if plain and weight is not None and isinstance(weight.op, Variable):
            packing = module.variables[weight.op.key].packing
            if isinstance(packing, PackPanels):
                axes[weight.op.key] = packing.axes[-1]
        if shift is not None and isinstance(shift.op, Variable):
            axes[shift.op.key] = 0
        if len(axes) == 1 + (shift is not None) and _alone(module, node, axes):
            return Growth(axes, count)
    raise ConfigError(
        f"{classes} classes: the output {model.outputs[0].name!r} has "
        f"{class_count(model)}, and only a model that ends with a linear layer can "
        f"get more; it ends with {node!r}"
    )


def _alone(module: Module, head: Node, axes: dict[str, int]) -> bool:
    """Whether nothing else reads the parameters or the output of the head."""
    for graph in module.functions.values():
        for node in graph.nodes():
            read = {v.op.key for v in node.inputs if v and isinstance(v.op, Variable)}
            if node is not head and read & axes.keys():
                return False
            if any(v is not None and v.node is head for v in node.inputs):
                return False
    return True


def grown(model: Model, growth: Growth) -> Model:
    """The model with more classes; what it knows of the others stays."""
    module = model.module
    values = model.parameters()
    variables = dict(module.variables)
    for key in growth.axes:
        variables[key] = _enlarged(variables[key], growth.of(key, values[key]))
    graph = module.functions[INFER]
    head = graph.outputs[0].node

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if isinstance(node.op, Variable) and node.op.key in growth.axes:
            return (variable_value(node.op.key, variables[node.op.key].type),)
        if node is head and isinstance(node.op, Linear):
            columns = node.op.columns + growth.more
            op = Linear(columns, node.op.activation, node.op.alpha, node.op.beta)
            return op.node(*inputs, label=node.label)
        return with_inputs(node, inputs)

    functions = {**module.functions, INFER: graph.rebuild(visit)}
    return Model(Module(functions, variables, module.metadata))


def _enlarged(info: VariableInfo, array: Array) -> VariableInfo:
    logical = TensorType(info.logical.dtype, array.shape)
    if info.packing is None:
        return VariableInfo(info.key, logical, info.role, array)
    stored = np.asarray(info.packing.reference(array))
    type_ = TensorType(info.type.dtype, stored.shape)
    return VariableInfo(info.key, type_, info.role, stored, logical, info.packing)


def as_logical(info: VariableInfo, stored: Array) -> Array:
    """An array that is stored like a variable, in the shape of the source model."""
    if isinstance(info.packing, Packing):
        return info.packing.unpack(stored, info.logical)
    return stored


def as_stored(info: VariableInfo, logical: Array) -> Array:
    """The way back."""
    if info.packing is None:
        return logical
    return np.ascontiguousarray(info.packing.reference(logical))
