"""Values of variables: given anew, in the form in which they are stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from edgewise.errors import CheckpointError, ConfigError, DTypeError, ShapeError
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise_trainer.names import AVERAGE
from edgewise_trainer.wanted import as_array, converted


def with_array(info: VariableInfo, array: Array) -> VariableInfo:
    """The variable with another array, stored as it is."""
    return info.holding(array)


def as_now(module: Module, live: Mapping[str, Array], keys: Collection[str]) -> Module:
    """The module with what its variables among ``keys`` hold now."""
    variables = dict(module.variables)
    for key in variables.keys() & keys:
        variables[key] = with_array(variables[key], live[key].copy())
    return Module(module.functions, variables, module.metadata)


def given(module: Module, values: Mapping[str, Array]) -> Module:
    """The module with other parameters, in the shapes of the source model.

    Raises:
        ConfigError: There is no such parameter.
        ShapeError: An array has another shape.
    """
    if not isinstance(values, Mapping):
        got = type(values).__name__
        raise ConfigError(f"parameters: got a {got}; want a mapping of names to arrays")
    variables = dict(module.variables)
    for key, value in values.items():
        variables[key] = replaced(variables.get(key), key, value)
    return Module(module.functions, variables, module.metadata)


def averages(live: Mapping[str, Array], keys: Iterable[str]) -> dict[str, Array]:
    """Values with running averages in the place of those that have one.

    Raises:
        ConfigError: None has.
    """
    found = {
        key: live[f"{key}/{AVERAGE}"] for key in keys if f"{key}/{AVERAGE}" in live
    }
    if not found:
        raise ConfigError(
            "averaged: the optimizer keeps none; want optimizers.Averaged around it"
        )
    return {**live, **found}


def want_states(
    infos: Iterable[VariableInfo], states: Mapping[str, Array], *, all_of: bool
) -> None:
    """Raise ``CheckpointError`` unless states are such as a step remembers.

    Args:
        infos: What it remembers.
        states: What is given.
        all_of: Whether nothing may be missing.
    """
    for info in infos:
        if info.key not in states:
            if all_of:
                raise CheckpointError(f"the state {info.key!r} is missing")
            continue
        array = as_array(info.key, states[info.key])
        if array.shape != info.type.dims or array.dtype != info.type.dtype.numpy:
            got = f"{array.dtype}{list(array.shape)}"
            raise CheckpointError(f"state {info.key!r}: got {got}; want {info.type}")


def replaced(info: VariableInfo | None, key: str, value: Array) -> VariableInfo:
    """The variable with another logical array."""
    if info is None:
        raise ConfigError(f"the model has no parameter {key!r}")
    dtype, array = info.logical.dtype.numpy, as_array(f"parameter {key!r}", value)
    if array.dtype.kind not in "iuf":
        raise DTypeError(f"parameter {key!r}: got {array.dtype}; want {dtype}")
    array = converted(f"parameter {key!r}", array, dtype)
    if array.shape != info.logical.dims:
        got = list(array.shape)
        raise ShapeError(f"parameter {key!r}: got {got}; want {info.logical}")
    if info.packing is not None:
        array = np.asarray(info.packing.reference(array))
    return with_array(info, np.ascontiguousarray(array))
