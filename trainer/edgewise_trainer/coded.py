"""Weights that keep to their coding while they are trained.

What a model reads of such a weight is computed from what is trained:

- sparse: the weight, without a gradient where it is zero: what was pruned stays so;
- binary: the size of each output channel with the signs of real weights, whose
  gradients pass straight through (Courbariaux et al., 2015; Rastegari et al., 2016);
- codebook: the value of each element; the values alone are trained, by the sums of
  gradients of all that share one (Han et al., 2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, constant, variable_value
from edgewise.ir.module import Coding, Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.ops import (
    Abs,
    Equal,
    Gather,
    GreaterEqual,
    Neg,
    ReduceMean,
    StraightThrough,
    Where,
)
from edgewise.ops.pack import PackPanels
from edgewise.types import DType, TensorType
from edgewise_trainer.terms import scalar, zeros
from edgewise_trainer.values import with_array


class Codebook(NamedTuple):
    """The values of one weight.

    Attributes:
        weight: Its name.
        values: They.
        numbers: Of each stored element the number of its value.
    """

    weight: str
    values: VariableInfo
    numbers: Array

    @property
    def infos(self) -> tuple[VariableInfo, ...]:
        """The variables that are trained in place of the weight."""
        return (self.values,)

    def beside(self, weight: Value) -> Value:
        """The weight, made of its values."""
        del weight
        values = _still_zero(variable_value(self.values.key, self.values.type))
        return Gather(0)(values, constant(self.numbers))

    def merged(self, weight: Array, factors: Mapping[str, Array]) -> Array:
        """The same in numbers."""
        del weight
        return np.asarray(factors[self.values.key][self.numbers])

    def begun(self, weight: Array) -> dict[str, Array]:
        """Values of the variables where the stored weight is given anew.

        Raises:
            ConfigError: Elements that share a value differ in it.
        """
        values = np.zeros(self.values.type.dims, weight.dtype)
        values[self.numbers] = weight
        if not np.array_equal(values[self.numbers], weight):
            raise ConfigError(
                f"parameter {self.weight!r} has a codebook: got several numbers for one"
                " value; cluster them anew, or train the model without"
            )
        return {self.values.key: values}


def codebooks(module: Module, weights: Iterable[str]) -> tuple[Codebook, ...]:
    """Of each weight that has one, its codebook."""
    infos = [module.variables[key] for key in weights]
    return tuple(_codebook(i) for i in infos if i.coding is Coding.CODEBOOK)


def _codebook(info: VariableInfo) -> Codebook:
    assert info.initial is not None  # noqa: S101 - a parameter
    values, numbers = np.unique(info.initial, return_inverse=True)
    type_ = TensorType(info.type.dtype, values.shape)
    key = f"{info.key}/codebook"
    made = VariableInfo(key, type_, Role.STATE, values)
    return Codebook(info.key, made, numbers.reshape(info.type.dims).astype(np.int32))


def kept(weight: Value, info: VariableInfo) -> Value:
    """What a model reads of a trained weight of a coding that has no codebook."""
    if info.coding is Coding.SPARSE:
        return _still_zero(weight)
    if info.coding is Coding.BINARY:
        size = ReduceMean(_summed(info), keepdims=True)(Abs()(weight))
        positive = GreaterEqual()(weight, scalar(0.0, weight))
        return StraightThrough()(Where()(positive, size, Neg()(size)), weight)
    return weight


def keeps(info: VariableInfo) -> bool:
    """Whether training a weight takes ``kept``."""
    real = info.type.dtype in (DType.F32, DType.F64)
    return real and info.coding in (Coding.SPARSE, Coding.BINARY)


def settled(module: Module, trained: Iterable[str]) -> Module:
    """The module with binary weights in place of the real ones behind them."""
    variables = dict(module.variables)
    for key in trained:
        info = variables[key]
        if info.coding is Coding.BINARY and info.initial is not None:
            size = np.abs(info.initial).mean(_summed(info), keepdims=True)
            signs = np.where(info.initial >= 0, size, -size)
            variables[key] = with_array(info, signs.astype(info.initial.dtype))
    return Module(module.functions, variables, module.metadata)


def _still_zero(weight: Value) -> Value:
    """Numbers without a gradient where they are zero."""
    zero = Equal()(weight, scalar(0.0, weight))
    return Where()(zero, zeros(weight), weight)


def _summed(info: VariableInfo) -> tuple[int, ...]:
    """Axes of the stored weight that one output channel takes."""
    if isinstance(info.packing, PackPanels):
        return (1,)
    if info.packing is not None:  # taps
        return (0,)
    return tuple(range(1, info.type.rank))
