"""The weights of a model, as what is made smaller sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, Variable
from edgewise.ir.module import Coding, Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import INFER, Model, logical_array, stored_array, want_model
from edgewise.wanted import fitting

Change = Callable[[Array, VariableInfo], Array]


def weights_of(model: Model, keep: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Names of the real parameters of two axes or more, in the order of their use.

    Args:
        model: The model.
        keep: Patterns (as of fnmatch) of names that are left out.

    Raises:
        ConfigError: There are none, or ``keep`` fits none.
    """
    want_model(model)
    infos = model.module.variables
    nodes = [n for graph in model.module.functions.values() for n in graph.nodes()]
    read = [node.op.key for node in nodes if isinstance(node.op, Variable)]
    kept = fitting("keep", keep, infos)
    found = tuple(
        key for key in dict.fromkeys(read) if is_weight(infos[key]) and key not in kept
    )
    if not found:
        raise ConfigError("compress: got a model without real weights to make smaller")
    return found


def is_weight(info: VariableInfo) -> bool:
    """Whether a variable is a weight: real, and of two axes or more."""
    real = info.logical.dtype.is_float and info.initial is not None
    return real and info.role is Role.PARAMETER and info.logical.rank > 1


def first_layers(model: Model) -> frozenset[str]:
    """Weights that meet an input of the model itself, moved at most."""
    graph = model.module.functions[INFER]
    early: set[Value] = set(graph.inputs)
    found: set[str] = set()
    for node in graph.nodes():
        inputs = [value for value in node.inputs if value is not None]
        if not any(value in early for value in inputs):
            continue
        own = [v.op.key for v in inputs if isinstance(v.op, Variable)]
        weights = [k for k in own if is_weight(model.module.variables[k])]
        found |= set(weights)
        if not weights:
            early |= {Value(node, index) for index in range(len(node.types))}
    return frozenset(found)


def with_weights(model: Model, changes: Mapping[str, Array], coding: Coding) -> Model:
    """The model with other logical weights, which files may hold in a coding."""
    variables = dict(model.module.variables)
    for key, weight in changes.items():
        info = variables[key]
        stored = np.ascontiguousarray(weight, info.logical.dtype.numpy)
        if info.packing is not None:
            stored = np.asarray(info.packing.reference(stored))
        variables[key] = info.holding(stored, coding)
    module = model.module
    return Model(Module(module.functions, variables, module.metadata))


def logical(model: Model, key: str) -> Array:
    """A weight in the shape of the source model.

    Raises:
        ConfigError: It has numbers that are not finite, which nothing is close to.
    """
    info = model.module.variables[key]
    weight = logical_array(info, stored_array(info))
    if not np.isfinite(weight).all():
        raise ConfigError(
            f"compress: {key!r} has numbers that are not finite; want it in keep"
        )
    return weight
