"""Weights as small whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.ir.module import VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.model import logical_array
from edgewise.ops.pack import PackPanels, PackQuads, PackTaps
from edgewise.types import DType, TensorType

SEVEN, EIGHT = 63, 127


class Whole(NamedTuple):
    """A weight as signed bytes.

    Attributes:
        info: The variable, packed.
        scale: What one step is, for every output channel.
        lost: What rounding took from each weight, in the logical shape.
        sqnr: Signal to noise, in dB; infinite where nothing was lost.
    """

    info: VariableInfo
    scale: Array
    lost: Array
    sqnr: float

    def named(self, key: str) -> Whole:
        """The same in a variable of another name."""
        i = self.info
        info = VariableInfo(key, i.type, i.role, i.initial, i.logical, i.packing)
        return self._replace(info=info)


def output_axis(packing: Op) -> int:
    """The logical axis of the output channels."""
    return packing.axes[-1] if isinstance(packing, PackPanels) else 0


def can_be_bytes(info: VariableInfo) -> bool:
    """Whether a variable is a weight that products of bytes can take."""
    packing = info.packing
    if info.initial is None or info.logical.dtype is not DType.F32:
        return False
    if isinstance(packing, PackPanels):
        return not packing.batch and len(packing.axes) in (2, 4)
    return isinstance(packing, PackTaps)


def as_bytes(info: VariableInfo, *, limit: int, per_channel: bool) -> Whole:
    """A weight from ``-limit`` to ``limit``, with the scales of its output channels."""
    packing, initial = info.packing, info.initial
    assert packing is not None and initial is not None  # noqa: S101, PT018 - as asked
    weight = logical_array(info, initial)
    axis = output_axis(packing)
    others = tuple(a for a in range(weight.ndim) if a != axis)
    most = np.abs(weight).max(axis=others, initial=0.0)
    if not per_channel:
        most = np.full_like(most, most.max(initial=0.0))
    scale = np.where(most > 0, most / limit, 1.0).astype(np.float32)
    lined = scale.reshape([-1 if a == axis else 1 for a in range(weight.ndim)])
    whole = np.clip(np.rint(weight / lined), -limit, limit).astype(np.int8)
    pack: PackQuads | PackTaps = PackTaps()
    if isinstance(packing, PackPanels):
        pack = PackQuads(packing.axes, packing.groups)
    stored = np.ascontiguousarray(pack.reference(whole))
    type_ = TensorType(DType.I8, stored.shape)
    logical = TensorType(DType.I8, whole.shape)
    made = VariableInfo(info.key, type_, info.role, stored, logical, pack)
    lost = weight - whole * lined
    return Whole(made, scale, lost, decibels(weight, lost))


def decibels(signal: Array, noise: Array) -> float:
    """Signal to noise; infinite where there is no noise."""
    powers = [float(np.square(x, dtype=np.float64).sum()) for x in (signal, noise)]
    if not powers[1]:
        return float("inf")
    return 10 * float(np.log10(powers[0] / powers[1])) if powers[0] else 0.0
