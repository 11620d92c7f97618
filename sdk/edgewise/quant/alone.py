"""Weights alone in few bits: layers compute in float32 and widen them as they read.

Those of linear layers and convolutions have the bits that are asked for; tables that
rows are taken from are halves.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import Model, logical_array, stored_array
from edgewise.ops.choose import Cast
from edgewise.ops.conv import Conv
from edgewise.ops.index import Gather
from edgewise.ops.matmul import Linear
from edgewise.ops.narrow import NarrowConv, NarrowLinear
from edgewise.ops.pack import PackPanels
from edgewise.ops.pack_narrow import BYTE, HALF, NIBBLE, PackHalves, PackNarrow
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.guard import in_order, real_layers, score_of, score_to_hold
from edgewise.quant.report import KEY, LayerReport, QuantizationReport
from edgewise.quant.weights import decibels
from edgewise.types import DType, TensorType
from edgewise.wanted import fitting

logger = logging.getLogger(__name__)
KINDS = {"float16": HALF, "int8": BYTE, "int4": NIBBLE}
TABLE, WEIGHT = 0, 1  # slots: of a table of rows, of the weight of a layer
# dB signal to noise that weights keep but where they are too small for their type.
LEAST = {DType.F16: 40.0, DType.U8: 6.0}
INFINITE = 65520.0  # the least number that becomes infinity as a half
METHOD = "weights alone"
ANY = (-np.inf, np.inf)  # the range of an image that nobody looked at


Packing: TypeAlias = PackNarrow | PackHalves


class Small(NamedTuple):
    """A weight in few bits.

    Attributes:
        info: The variable.
        sqnr: Signal to noise, in dB.
    """

    info: VariableInfo
    sqnr: float


def weights_alone(
    model: Model, config: QuantizeConfig, scales: Mapping[str, Array] | None = None
) -> Model:
    """The model with the weights of its layers in few bits.

    Args:
        model: The model.
        config: How many bits.
        scales: Of each weight those that are known, as ``PackNarrow.stepped`` has them.

    Raises:
        ConfigError: It has no weight that can be.
    """
    alone = Alone(model, config, scales)
    for note in alone.notes:
        logger.warning("%s", note)
    if not alone.small:
        raise ConfigError(
            "quantize: got a model without weights of linear layers or convolutions "
            f"that can be {config.weights}{': ' if alone.notes else ''}"
            f"{'; '.join(alone.notes)}"
        )
    evaluate, drop = config.evaluate, config.max_drop
    if evaluate is None or drop is None:
        return alone.model(alone.small)
    return _guarded(alone, model, evaluate, drop)


def _guarded(
    alone: Alone, model: Model, evaluate: Callable[[Model], float], drop: float
) -> Model:
    """As many weights in few bits as let the score hold: the noisiest stay."""
    source = score_to_hold(evaluate, model)

    def without(real: Collection[str]) -> Model:
        return alone.model([key for key in alone.small if key not in real])

    def ranked() -> list[str]:
        if alone.order is not None:
            return in_order(list(alone.small), str, alone.order)
        return sorted(alone.small, key=lambda key: alone.small[key].sqnr)

    def holds(real: Collection[str]) -> bool:
        return score_of(evaluate, without(real)) >= source - drop

    return without(real_layers(ranked, holds))


class Alone:
    """Models with any choice of weights in few bits.

    Attributes:
        small: What weights become, by name.
        notes: Why others do not.
    """

    def __init__(
        self,
        model: Model,
        config: QuantizeConfig,
        scales: Mapping[str, Array] | None = None,
    ) -> None:
        self._module, self._config = model.module, config
        self._names = _candidates(model.module)
        self.order = config.order
        packings, self.notes = packings_for(model.module, config)
        self.small: dict[str, Small] = {}
        for key, packing in packings.items():
            known = (scales or {}).get(key)
            found = _small(model.module.variables[key], packing, known)
            if isinstance(found, Small):
                self.small[key] = found
            else:
                self.notes.append(_stays(key, found))

    def model(self, chosen: Collection[str]) -> Model:
        """The model with these weights in few bits."""
        made = {key: small for key, small in self.small.items() if key in chosen}
        rows = [self._row(key, made.get(key)) for key in self._names]
        config, notes = self._config, tuple(self.notes)
        report = QuantizationReport(
            tuple(rows), config.weights, config.activations, METHOD, notes
        )
        return Model(_rewritten(self._module, made, report))

    def _row(self, key: str, small: Small | None) -> LayerReport:
        if small is None:
            return LayerReport(key, "float32", np.inf, *ANY, 0.0)
        halves = small.info.type.dtype is DType.F16
        precision = "float16" if halves else self._config.weights
        return LayerReport(key, precision, small.sqnr, *ANY, 0.0)


def _candidates(module: Module) -> list[str]:
    """Weights that nothing reads but layers, and tables that rows are taken from."""
    found: dict[str, set[bool]] = {}
    others: set[str] = set()
    for graph in module.functions.values():
        for node in graph.nodes():
            slot = _slot(node)
            for index, value in enumerate(node.inputs):
                if value is None or not isinstance(value.op, Variable):
                    continue
                if index == slot:
                    found.setdefault(value.op.key, set()).add(slot == TABLE)
                else:
                    others.add(value.op.key)
        ends = (*graph.outputs, *graph.updates.values())
        others |= {value.op.key for value in ends if isinstance(value.op, Variable)}
        others |= set(graph.updates)
    return [
        key
        for key, tables in found.items()
        if key not in others and _is_weight(module.variables[key], tables)
    ]


def _slot(node: Node) -> int | None:
    """Which input of a node may have few bits."""
    if isinstance(node.op, Linear | Conv):
        return WEIGHT
    return TABLE if isinstance(node.op, Gather) else None


def _is_weight(info: VariableInfo, tables: set[bool]) -> bool:
    packing = info.packing
    if info.initial is None or info.type.dtype is not DType.F32:
        return False
    if tables == {True}:
        return packing is None and info.type.rank > 1
    panels = isinstance(packing, PackPanels) and not packing.batch
    return panels and tables == {False}


def _unfit(info: VariableInfo, config: QuantizeConfig) -> str:
    """Why a weight cannot be stored so; nothing where it can."""
    stored = stored_array(info)
    if not np.isfinite(stored).all():
        return "it has numbers that are not finite"
    most = float(np.abs(stored).max(initial=0.0))
    pack = _packing(info, config)
    halves = pack.infer(info.logical).dtype is DType.F16
    if halves and most >= INFINITE:
        return f"{most:g} is beyond {np.finfo(np.float16).max:g}, the largest half"
    if _bytes(pack.infer(info.logical)) >= _bytes(info.type):
        return "it would be no smaller"
    return ""


def packings_for(
    module: Module, config: QuantizeConfig
) -> tuple[dict[str, Packing], list[str]]:
    """How each weight is stored that gets few bits, and why others do not."""
    found: dict[str, Packing] = {}
    notes: list[str] = []
    keep = fitting("keep", config.keep, module.variables)
    for key in _candidates(module):
        if key in keep:
            continue
        info = module.variables[key]
        if reason := _unfit(info, config):
            notes.append(_stays(key, reason))
        else:
            found[key] = _packing(info, config)
    return found, notes


def _stays(key: str, reason: str) -> str:
    return f"{key} stays float32: {reason}"


def _bytes(type_: TensorType) -> int:
    return math.prod(type_.dims) * type_.dtype.numpy.itemsize


def _packing(info: VariableInfo, config: QuantizeConfig) -> Packing:
    """How a weight is stored; tables are halves, whatever layers have."""
    packing = info.packing
    if not isinstance(packing, PackPanels):
        return PackHalves()
    kind = KINDS[config.weights]
    return PackNarrow(packing.axes, packing.groups, kind, config.group)


def _small(info: VariableInfo, pack: Packing, scales: Array | None) -> Small | str:
    """A weight in few bits, or why it cannot be."""
    weight = logical_array(info, stored_array(info))
    stored: Array = (
        pack.stepped(weight, scales)
        if isinstance(pack, PackNarrow)
        else pack.reference(weight)
    )
    lost = weight - pack.unpack(stored, info.logical)
    type_ = TensorType(pack.infer(info.logical).dtype, stored.shape)
    made = VariableInfo(info.key, type_, info.role, stored, info.logical, pack)
    sqnr = decibels(weight, lost)
    if sqnr < LEAST[type_.dtype]:
        return f"its numbers are so small that they would be lost ({sqnr:.1f} dB)"
    return Small(made, sqnr)


def _rewritten(
    module: Module, made: Mapping[str, Small], report: QuantizationReport
) -> Module:
    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        slot = _slot(node)
        weight = None if slot is None else node.inputs[slot]
        if weight is None or not isinstance(weight.op, Variable):
            return with_inputs(node, inputs)
        small = made.get(weight.op.key)
        if small is None:
            return with_inputs(node, inputs)
        read = variable_value(small.info.key, small.info.type)
        if slot == TABLE:
            rows = node.op(read, inputs[1], label=node.label)
            return (Cast(DType.F32.value)(rows),)
        x, _, *epilogue = inputs
        return (_op(node, small.info)(x, read, *epilogue, label=node.label),)

    functions: dict[str, Graph] = {
        name: graph.rebuild(visit) for name, graph in module.functions.items()
    }
    variables = {**module.variables, **{key: s.info for key, s in made.items()}}
    return Module(functions, variables, {**module.metadata, KEY: report.text()})


def _op(node: Node, info: VariableInfo) -> NarrowLinear | NarrowConv:
    """The layer over a weight of few bits."""
    op, pack = node.op, info.packing
    assert isinstance(pack, PackNarrow)  # noqa: S101 - made so above
    kind = NarrowConv if isinstance(op, Conv) else NarrowLinear
    return kind(*op.values, pack.kind, pack.block)
