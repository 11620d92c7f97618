"""Low-rank adapters: two factors beside each weight, which alone are trained.

What a model reads of a weight ``W`` becomes ``W + A B``, ``A`` having R columns (Hu et
al., 2022).  ``A`` begins with small random numbers and ``B`` with zeros, so that at
first nothing changes.  Both have the form in which ``W`` is stored: panels
``[P, K, 16]`` of a matrix ``[K, N]`` are ``A [K, R]`` times panels ``B [P, R, 16]``;
no weight is ever unpacked.  Lanes beyond N stay zero, as their gradients are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from edgewise.ir.graph import Value, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.ops import Add, MatMul, Reshape
from edgewise.ops.pack import PackPanels
from edgewise.types import TensorType


class Adapter(NamedTuple):
    """The factors of one weight.

    Attributes:
        weight: Its name.
        a: The first factor, random.
        b: The second, zeros.
    """

    weight: str
    a: VariableInfo
    b: VariableInfo

    @property
    def infos(self) -> tuple[VariableInfo, ...]:
        """The variables that are trained in place of the weight."""
        return self.a, self.b

    def begun(self, weight: Array) -> dict[str, Array]:
        """Values of the variables where the stored weight is given anew: all of it."""
        del weight
        return {self.b.key: np.zeros(self.b.type.dims, self.b.type.dtype.numpy)}

    def beside(self, weight: Value) -> Value:
        """The weight with the product of the factors added."""
        factors = [variable_value(i.key, i.type) for i in (self.a, self.b)]
        change = MatMul()(*factors)
        if change.type.shape != weight.type.shape:
            change = Reshape(weight.type.shape)(change)
        return Add()(weight, change)

    def merged(self, weight: Array, factors: Mapping[str, Array]) -> Array:
        """The same in numbers, of the stored weight."""
        change = factors[self.a.key] @ factors[self.b.key]
        return np.asarray(weight + change.reshape(weight.shape), weight.dtype)


def adapters(
    module: Module, weights: Iterable[str], rank: int, seed: int
) -> tuple[Adapter, ...]:
    """An adapter of ``rank`` for each weight; the seed decides where they begin."""
    rng = np.random.default_rng((seed, rank))
    return tuple(_adapter(module.variables[key], rank, rng) for key in weights)


def _adapter(info: VariableInfo, rank: int, rng: np.random.Generator) -> Adapter:
    dtype = info.type.dtype
    rows, *columns = info.type.dims
    if isinstance(info.packing, PackPanels):
        panels, rows, lanes = info.type.dims
        right: tuple[int, ...] = (panels, rank, lanes)
    else:
        right = (rank, math.prod(columns))
    bound = 1 / math.sqrt(max(rows, 1))
    first = rng.uniform(-bound, bound, (rows, rank)).astype(dtype.numpy)
    keys = [f"{info.key}/lora_a", f"{info.key}/lora_b"]
    a = VariableInfo(keys[0], TensorType(dtype, first.shape), Role.STATE, first)
    zeros = np.zeros(right, dtype.numpy)
    b = VariableInfo(keys[1], TensorType(dtype, right), Role.STATE, zeros)
    return Adapter(info.key, a, b)
