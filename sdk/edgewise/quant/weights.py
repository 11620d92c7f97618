"""Weights as small whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.ir.module import VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.model import logical_array
from edgewise.ops.pack import PackPanels, PackQuads, PackTaps
from edgewise.types import DType, TensorType

MOST = 127
# Bits of weights whose products processors add in 16 bits, four at a time; and what the
# weights of such a sum may add up to on either side of 0: 128, less what rounding adds.
PAIRED, EIGHT = 6, 8
PAIRED_MOST = 126


class Whole(NamedTuple):
    """A weight as signed bytes.

    Attributes:
        info: The variable, packed.
        scale: What one step is, for every output channel.
        lost: What rounding took from each weight, in the logical shape.
        sqnr: Signal to noise, in dB; infinite where nothing was lost.
        bits: As ``weight_bits`` of ``byte_conv``.
    """

    info: VariableInfo
    scale: Array
    lost: Array
    sqnr: float
    bits: int

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


def as_bytes(
    info: VariableInfo, *, paired: bool, per_channel: bool, steps: Array | None = None
) -> Whole:
    """A weight of whole numbers, with the scales of its output channels.

    ``paired`` ones are such as ``byte_conv`` wants of 6 bits; the weight of a depthwise
    convolution gains nothing by it.  ``steps`` are scales that are known, one for each
    output channel or one for all; paired ones become as large as they have to be.
    """
    packing, initial = info.packing, info.initial
    assert packing is not None and initial is not None  # noqa: S101, PT018 - as asked
    weight = logical_array(info, initial)
    axis = output_axis(packing)
    others = tuple(a for a in range(weight.ndim) if a != axis)
    most = np.abs(weight).max(axis=others, initial=0.0) / MOST
    bits = EIGHT
    if paired and isinstance(packing, PackPanels):
        bits, most = PAIRED, _pair_sums(weight, packing) / PAIRED_MOST
    if steps is not None:
        most = np.maximum(steps, most) if bits == PAIRED else steps + 0 * most
    if not per_channel:
        most = np.full_like(most, most.max(initial=0.0))
    scale = np.where(most > 0, most, 1.0).astype(np.float32)
    lined = scale.reshape([-1 if a == axis else 1 for a in range(weight.ndim)])
    whole = np.clip(np.rint(weight / lined), -MOST, MOST).astype(np.int8)
    pack: PackQuads | PackTaps = PackTaps()
    if isinstance(packing, PackPanels):
        pack = PackQuads(packing.axes, packing.groups)
    stored = np.ascontiguousarray(pack.reference(whole))
    type_ = TensorType(DType.I8, stored.shape)
    logical = TensorType(DType.I8, whole.shape)
    made = VariableInfo(info.key, type_, info.role, stored, logical, pack)
    lost = weight - whole * lined
    return Whole(made, scale, lost, decibels(weight, lost), bits)


def _pair_sums(weight: Array, packing: PackPanels) -> Array:
    """The largest sum, on one side of 0, that is made in 16 bits for each channel.

    Such sums have two neighbours of a quad, and the two that lie alike in the next.
    """
    quads = PackQuads(packing.axes, packing.groups).reference(weight)
    count, length, lanes, _ = quads.shape
    even = np.pad(quads, ((0, 0), (0, length % 2), (0, 0), (0, 0)))
    pairs = even.reshape(count, -1, 2, lanes, 2, 2)
    sides = (np.maximum(side, 0).sum(axis=(2, 5)) for side in (pairs, -pairs))
    most = np.maximum(*sides).max(axis=(1, 3), initial=0.0)
    each = weight.shape[output_axis(packing)] // packing.groups
    return np.asarray(most.reshape(packing.groups, -1)[:, :each].reshape(-1))


def decibels(signal: Array, noise: Array) -> float:
    """Signal to noise; infinite where there is no noise."""
    powers = [float(np.square(x, dtype=np.float64).sum()) for x in (signal, noise)]
    if not powers[1]:
        return float("inf")
    return 10 * float(np.log10(powers[0] / powers[1])) if powers[0] else 0.0
