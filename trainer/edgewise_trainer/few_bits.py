"""Weights alone of few bits in training: blocks of whole numbers times a step each."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import NamedTuple

from edgewise.ir.graph import Value
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model, stored_array
from edgewise.ops import (
    Abs,
    Clip,
    Maximum,
    Mul,
    ReduceMax,
    Reshape,
    Slice,
    StraightThrough,
)
from edgewise.ops.pack import PANEL
from edgewise.ops.pack_narrow import MOST, SHARES, PackNarrow, block_scales
from edgewise.ops.pad import Pad
from edgewise.quant.alone import packings_for, weights_alone
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.grid import LEAST
from edgewise_trainer.rounding import (
    begun_steps,
    found_steps,
    held_with,
    plain,
    rounded,
    weight_steps,
)
from edgewise_trainer.stand_ins import reading
from edgewise_trainer.terms import scalar


class _Blocks(NamedTuple):
    """How the panels ``[P, K, 16]`` of a weight are cut.

    Attributes:
        info: The weight, as it is trained.
        kind: Of its whole numbers.
        size: Indices of a block.
    """

    info: VariableInfo
    kind: str
    size: int

    @property
    def number(self) -> int:
        """Blocks of a panel."""
        return -(-self.info.type.dims[1] // self.size)

    def scales(self, shares: tuple[float, ...] = (1.0,)) -> Array:
        """As ``block_scales`` of what it is now."""
        stored = stored_array(self.info)
        return block_scales(stored, self.kind, self.size, shares)

    def over(self, weight: Value, learning: Module | None) -> Value:
        """What a model reads of it: by steps of its blocks, learned or made anew."""
        panels, reduced, _ = self.info.type.dims
        more = self.number * self.size - reduced
        filled = Pad((0, 0, 0, 0, more, 0))(weight) if more else weight
        blocks = Reshape((panels, self.number, self.size, PANEL))(filled)
        read = self._rounded(blocks, learning)
        whole = Reshape((panels, reduced + more, PANEL))(read)
        if not more:
            return whole
        return Slice((0, 0, 0), self.info.type.dims, (1, 1, 1))(whole)

    def _rounded(self, blocks: Value, learning: Module | None) -> Value:
        most = MOST[self.kind]
        if learning is not None:
            step = weight_steps(self.info.key, learning, self.size, most)
            return rounded(blocks, step, Clip(float(-most), float(most)))
        largest = ReduceMax((2,), keepdims=True)(Abs()(blocks))
        step = Mul()(largest, scalar(1 / most, largest))
        step = StraightThrough()(Maximum()(step, scalar(LEAST, step)))
        return rounded(blocks, step, lambda level: level)


def begun(model: Model, config: QuantizeConfig) -> Model:
    """The model with what training is to learn for its quantisation.

    Raises:
        ConfigError: It has no weight that can have few bits.
    """
    weights_alone(plain(model), config)  # says why, where there is none
    if not config.learn_steps:
        return model
    found = [
        info
        for blocks in _blocks(model.module, config)
        for info in begun_steps(
            blocks.info.key, blocks.scales(SHARES[blocks.kind])[:, :, None]
        )
    ]
    return held_with(model, found)


def rounding(
    module: Module, config: QuantizeConfig, trained: Collection[str]
) -> Module:
    """The module whose layers read whole numbers times steps.

    Steps are learned of weights that are trained, if they are at all.
    """
    ways = {}
    for blocks in _blocks(module, config):
        learns = config.learn_steps and blocks.info.key in trained
        learning = module if learns else None
        ways[blocks.info.key] = functools.partial(blocks.over, learning=learning)
    return reading(module, ways)


def exported(model: Model, config: QuantizeConfig) -> Model:
    """The model whose weights have few bits, by the steps that training found."""
    scales = {}
    for blocks in _blocks(model.module, config):
        known = found_steps(blocks.info.key, model.module)
        scales[blocks.info.key] = blocks.scales() if known is None else known[:, :, 0]
    return weights_alone(plain(model), config, scales)


def _blocks(module: Module, config: QuantizeConfig) -> list[_Blocks]:
    """Every weight that gets few bits; tables become halves, and lose nothing."""
    packings, _ = packings_for(module, config)
    return [
        _Blocks(module.variables[key], packing.kind, packing.block)
        for key, packing in packings.items()
        if isinstance(packing, PackNarrow)
    ]
