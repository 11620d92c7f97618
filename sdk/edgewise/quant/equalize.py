"""Ranges of channels, evened out between layers that follow one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    with_inputs,
)
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.model import INFER, Model, logical_array, stored_array
from edgewise.ops.conv import Conv
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.quant.factors import Factors
from edgewise.quant.sites import RESIDUAL, Sites
from edgewise.quant.weights import output_axis

# What gives s times as much for s times as much.
SCALED_ALONG = ("none", "relu", "leaky_relu")
SHIFT = 3
_SWEEPS = 10
_MOST = 8  # the largest factor, as a power of 2


class _Pair(NamedTuple):
    """Two layers of which the second reads what the first makes, and nobody else."""

    first: Node
    second: Node


def equalized(model: Model) -> Model:
    """The same function with channels of like range (Nagel et al., 2019).

    A channel may be divided by any number where it is made and multiplied by it where
    it is read.  The numbers are powers of two, so that nothing is rounded: the model
    gives the very bits it gave before.
    """
    graph = model.module.functions[INFER]
    sites = Sites(graph, model.module.variables)
    pairs = _pairs(graph, sites, model.module.variables)
    if not pairs:
        return model
    return _Evening(model, pairs).result()


def _pairs(
    graph: Graph, sites: Sites, variables: Mapping[str, VariableInfo]
) -> list[_Pair]:
    readers = graph.readers()
    alone = {node for node in sites.layers if readers[_weight(node)] == 1}
    found = []
    for second in sites.layers:
        first = second.inputs[0]
        if first is None or first.node not in alone or second not in alone:
            continue
        linear = first.op.activation in SCALED_ALONG  # type: ignore[attr-defined]  # a layer
        added = (*first.node.inputs, None, None, None)[RESIDUAL]
        if linear and added is None and readers[first] == 1 and _channels(second):
            found.append(_Pair(first.node, second))
    return [pair for pair in found if _fit(pair, variables)]


def _channels(node: Node) -> bool:
    """Whether channels of the image are an axis of the weight."""
    return not isinstance(node.op, Conv) or node.op.groups == 1


def _fit(pair: _Pair, variables: Mapping[str, VariableInfo]) -> bool:
    """Whether both weights have the channels between: none lie side by side in one."""
    made = variables[_key(pair.first)]
    read = variables[_key(pair.second)]
    count = Value(pair.first).type.shape[-1]
    first = made.logical.shape[_made_axis(made)]
    return first == count == read.logical.shape[_read_axis(read)]


class _Evening:
    """Weights and shifts on their way to like ranges."""

    def __init__(self, model: Model, pairs: list[_Pair]) -> None:
        self._model, self._pairs = model, pairs
        self._variables = model.module.variables
        self._factors = Factors(model)
        keys = {_key(node) for pair in pairs for node in pair}
        self._weights = {
            key: logical_array(info, stored_array(info)).copy()
            for key, info in self._variables.items()
            if key in keys
        }
        self._shifts: dict[Node, Array] = {}

    def result(self) -> Model:
        """The model with them."""
        for _ in range(_SWEEPS):
            changed = [self._even(pair) for pair in self._pairs]
            if not any(changed):
                break
        module = self._model.module
        infer = module.functions[INFER].rebuild(self._visit)
        variables = dict(self._variables)
        for key, weight in self._weights.items():
            info = variables[key]
            assert info.packing is not None  # noqa: S101 - weights of layers are packed
            stored = np.ascontiguousarray(info.packing.reference(weight))
            variables[key] = VariableInfo(
                key, info.type, info.role, stored, info.logical, info.packing
            )
        functions = {**module.functions, INFER: infer}
        return Model(Module(functions, variables, module.metadata))

    def _even(self, pair: _Pair) -> bool:
        """Whether a pair had something to even out; it has no more."""
        made, read = (self._variables[_key(node)] for node in pair)
        first, second = (self._weights[_key(node)] for node in pair)
        ranges = _most(first, _made_axis(made))
        scale = self._factors.of((*pair.first.inputs, None)[2])
        if scale is not None:
            ranges = ranges * np.abs(scale)
        others = _most(second, _read_axis(read))
        powers = np.zeros(ranges.shape)
        used = (ranges > 0) & (others > 0)
        powers[used] = np.rint((np.log2(ranges[used]) - np.log2(others[used])) / 2)
        if not powers.any():
            return False
        factor = np.exp2(np.clip(powers, -_MOST, _MOST)).astype(first.dtype)
        first /= _lined(factor, _made_axis(made), first.ndim)
        second *= _lined(factor, _read_axis(read), second.ndim)
        shift = self._shift(pair.first)
        if shift is not None:
            self._shifts[pair.first] = shift / factor
        return True

    def _shift(self, node: Node) -> Array | None:
        found = self._shifts.get(node)
        value = (*node.inputs, None, None)[SHIFT]
        return self._factors.of(value) if found is None else found

    def _visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        shift = self._shifts.get(node)
        if shift is not None:
            moved = constant(shift.astype(np.float32))
            inputs = (*inputs[:SHIFT], moved, *inputs[SHIFT + 1 :])
        return with_inputs(node, inputs)


def _weight(node: Node) -> Value:
    weight = node.inputs[1]
    assert weight is not None  # noqa: S101 - layers have one
    return weight


def _key(node: Node) -> str:
    op = _weight(node).op
    assert isinstance(op, Variable)  # noqa: S101 - as sites has found
    return op.key


def _made_axis(info: VariableInfo) -> int:
    assert info.packing is not None  # noqa: S101 - weights of layers are packed
    return output_axis(info.packing)


def _read_axis(info: VariableInfo) -> int:
    """The logical axis of the channels of the image."""
    packing = info.packing
    assert isinstance(packing, PackPanels | PackTaps)  # noqa: S101 - as sites has found
    return packing.axes[-2] if isinstance(packing, PackPanels) else 0


def _most(weight: Array, axis: int) -> Array:
    others = tuple(a for a in range(weight.ndim) if a != axis)
    return np.asarray(np.abs(weight).max(axis=others, initial=0.0))


def _lined(vector: Array, axis: int, rank: int) -> Array:
    return vector.reshape([-1 if a == axis else 1 for a in range(rank)])
