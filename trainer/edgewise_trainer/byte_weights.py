"""Weights of int8 in training: whole numbers times the step of an output channel."""

from __future__ import annotations

import math

import numpy as np

from edgewise.ir.graph import Value
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.ops import (
    Abs,
    Clip,
    Maximum,
    Mul,
    Neg,
    ReduceMax,
    ReduceSum,
    Reshape,
    StraightThrough,
)
from edgewise.ops.pack import PANEL, QUAD, PackPanels
from edgewise.ops.pad import Pad
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.grid import LEAST
from edgewise.quant.weights import MOST, PAIRED_MOST, as_bytes
from edgewise_trainer.rounding import rounded, weight_steps
from edgewise_trainer.terms import scalar


def whole_weight(
    weight: Value, info: VariableInfo, config: QuantizeConfig, learning: Module | None
) -> Value:
    """What a model over bytes reads of a weight.

    Its steps are those that quantisation gives it, made anew in every step of training;
    or the learned ones of the module ``learning``.
    """
    least = StraightThrough()(_step(weight, info, config))  # without a gradient
    if learning is None:
        return rounded(weight, least, lambda level: level)
    count = math.prod(info.logical.dims)
    if config.per_channel:
        count //= max(_channels(info), 1)
    step = weight_steps(info.key, learning, count, MOST)
    if _is_paired(info, config):
        step = Maximum()(step, least)
    return rounded(weight, step, Clip(float(-MOST), float(MOST)))


def first_steps(info: VariableInfo, config: QuantizeConfig) -> Array:
    """Where the learned steps of a weight begin, in the axes of the stored weight."""
    paired = config.reduce_range
    whole = as_bytes(info, paired=paired, per_channel=config.per_channel)
    shape = [1] * info.type.rank
    if not config.per_channel:
        return np.full(shape, whole.scale.max(initial=LEAST), np.float32)
    if isinstance(info.packing, PackPanels):
        lanes = _lanes(info.packing).reference(whole.scale[None])
        # Lanes beyond N hold zeros, which any step divides.
        return np.where(lanes > 0, lanes, 1.0).astype(np.float32)
    return whole.scale[None]


def steps_by_channel(info: VariableInfo, steps: Array) -> Array:
    """Steps as ``as_bytes`` wants them, of such as ``first_steps`` gives."""
    if steps.size == 1 or not isinstance(info.packing, PackPanels):
        return steps.reshape(-1)
    logical = info.logical.with_shape((1, _channels(info)))
    channels: Array = _lanes(info.packing).unpack(steps, logical)[0]
    return channels


def _lanes(packing: PackPanels) -> PackPanels:
    """How ``[1, N]`` is packed: one number a lane."""
    return PackPanels((0, 1), packing.groups)


def _channels(info: VariableInfo) -> int:
    axis = info.packing.axes[-1] if isinstance(info.packing, PackPanels) else 0
    return info.logical.dims[axis]


def _is_paired(info: VariableInfo, config: QuantizeConfig) -> bool:
    return config.reduce_range and isinstance(info.packing, PackPanels)


def _step(weight: Value, info: VariableInfo, config: QuantizeConfig) -> Value:
    """The least steps that hold a weight, one for each output channel or one."""
    panels, steps = isinstance(info.packing, PackPanels), MOST
    if _is_paired(info, config):
        most, steps = _pair_sums(weight, info), PAIRED_MOST
    else:
        most = ReduceMax((1 if panels else 0,), keepdims=True)(Abs()(weight))
    if not config.per_channel:
        most = ReduceMax(tuple(range(weight.type.rank)), keepdims=True)(most)
    step = Mul()(most, scalar(1 / steps, most))
    return Maximum()(step, scalar(LEAST, step))


def _pair_sums(w: Value, info: VariableInfo) -> Value:
    """As those of ``quant.weights``: of panels ``[P, K, 16]``, as ``[P, 1, 16]``."""
    assert isinstance(info.packing, PackPanels)  # noqa: S101 - as asked
    inner = info.logical.dims[info.packing.axes[-2]]
    count, reduced, _ = info.type.dims
    taps, filled = reduced // inner, -(-inner // QUAD) * QUAD
    lines = Reshape((count, taps, inner, PANEL))(w)
    lines = Pad((0, 0, 0, 0, 0, 0, filled - inner, 0))(lines)
    numbers = Reshape((count, taps * filled, PANEL))(lines)
    pairs = -(-taps * filled // (2 * QUAD))
    numbers = Pad((0, 0, 0, 0, pairs * 2 * QUAD - taps * filled, 0))(numbers)
    split = Reshape((count, pairs, 2, 2, 2, PANEL))(numbers)
    nothing = scalar(0.0, split)
    sides = [
        ReduceSum((2, 4), keepdims=False)(Maximum()(side, nothing))
        for side in (split, Neg()(split))
    ]
    most = ReduceMax((1, 2), keepdims=False)(Maximum()(*sides))
    return Reshape((count, 1, PANEL))(most)
