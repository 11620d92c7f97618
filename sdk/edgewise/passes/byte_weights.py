"""Stored whole numbers as weights of products over bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.ir.graph import Value, variable_value
from edgewise.ir.module import Role, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.ops.pack import PackPanels, PackQuads, PackTaps
from edgewise.passes.known import Whole
from edgewise.types import DType, TensorType

LEAST, MOST = -128, 127
# Two products of unsigned and signed bytes fit 16 bits where the weights of one sign
# add up to no more: 255 * 128 < 2**15.
PAIR = 128


class Weight(NamedTuple):
    """A weight in the order of byte products.

    Attributes:
        value: The packed variable.
        scale: Of every output channel.
        bits: 7 where its pairs fit 16 bits, else 8.
    """

    value: Value
    scale: Array
    bits: int


class ByteWeights:
    """The variables that weights become; one for all products that share one.

    Attributes:
        variables: Those made, by name.
    """

    def __init__(self, taken: set[str]) -> None:
        self.variables: dict[str, VariableInfo] = {}
        self._taken = set(taken)
        self._made: dict[tuple[str, Op, bytes], VariableInfo] = {}

    def packed(self, weight: Whole, packing: PackPanels | PackTaps) -> Weight | None:
        """A weight for products; ``None`` where it takes more than signed bytes."""
        whole = weight.whole
        if whole.size and (whole.min() < LEAST or whole.max() > MOST):
            return None
        scale = _per_channel(weight.scale, packing)
        if scale is None:
            return None
        whole, pack = whole.astype(np.int8), _pack(packing)
        key = (weight.key, pack, whole.tobytes())
        info = self._made.get(key)
        if info is None:
            info = self._made[key] = self._variable(weight.key, whole, pack)
        assert info.initial is not None  # noqa: S101 - made with it
        bits = 7 if pairs_fit(info.initial) else 8
        return Weight(variable_value(info.key, info.type), scale, bits)

    def _variable(
        self, key: str, whole: Array, pack: PackQuads | PackTaps
    ) -> VariableInfo:
        key = unique = key or "weight"
        count = 1
        while unique in self._taken:
            unique, count = f"{key}_{count}", count + 1
        self._taken.add(unique)
        stored = np.ascontiguousarray(pack.reference(whole))
        type_ = TensorType(DType.I8, stored.shape)
        logical = TensorType(DType.I8, whole.shape)
        info = VariableInfo(unique, type_, Role.PARAMETER, stored, logical, pack)
        self.variables[unique] = info
        return info


def pairs_fit(stored: Array) -> bool:
    """Whether sums of two neighbours, of either sign, stay small enough."""
    if stored.ndim != 4:  # taps have no pairs
        return False
    wide = stored.astype(np.int16).reshape(-1, 2)
    up, down = np.maximum(wide, 0).sum(1), np.minimum(wide, 0).sum(1)
    return bool(up.max(initial=0) <= PAIR and down.min(initial=0) >= -PAIR)


def _pack(packing: PackPanels | PackTaps) -> PackQuads | PackTaps:
    if isinstance(packing, PackTaps):
        return packing
    return PackQuads(packing.axes, packing.groups)


def _per_channel(scale: Array, packing: PackPanels | PackTaps) -> Array | None:
    """One number an output channel; ``None`` where there are more."""
    axis = packing.axes[-1] if isinstance(packing, PackPanels) else 0
    lines = np.moveaxis(scale, axis, 0).reshape(scale.shape[axis], -1)
    if not lines.size or (lines != lines[:, :1]).any():
        return None
    return np.ascontiguousarray(lines[:, 0])
