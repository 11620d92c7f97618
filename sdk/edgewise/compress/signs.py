"""Images of one bit: layers of binary weights that read signs, and count bits.

A layer that reads signs is written with real numbers, so that it can be trained: 1
where its input is 0 or more, else -1, with the gradient of the input where that lies
from -1 to 1 (Courbariaux et al., 2016).  Where such an image has pads they are 1.
``pack_binary`` puts products of bits in their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Constant,
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    with_inputs,
)
from edgewise.ir.module import Module, VariableInfo
from edgewise.model import INFER, Model
from edgewise.ops.binary import Add
from edgewise.ops.choose import Clip, Where
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.logic import GreaterEqual
from edgewise.ops.matmul import Linear
from edgewise.ops.norm import BatchNorm, ScaleShift
from edgewise.ops.pad import Pad
from edgewise.ops.pool import MaxPool
from edgewise.ops.shape import Reshape, Transpose
from edgewise.ops.straight import StraightThrough

PREPARE = "prepare"
MOVES = (MaxPool, Reshape, Transpose)
# What gives numbers of both signs, if it has no activation that takes those below 0.
SIGNED = (Conv, Linear, DepthwiseConv, Add, ScaleShift, BatchNorm)


def with_signs(model: Model, weights: Collection[str]) -> Model:
    """The model whose layers of these weights read signs, where those can tell much.

    Signs are taken of sums: a ReLU goes that only such layers read, if moves alone lie
    between.  Layers that read what is never below 0 for another reason stay.

    Raises:
        ConfigError: There is no such layer.
    """
    graph = model.module.functions[INFER]
    layers = {n for n in graph.nodes() if weight_of(n) in weights and is_dense(n)}
    signed = _Signed(graph, layers)
    if not signed.layers:
        raise ConfigError(
            "activations: got a model without binary layers that read sums"
        )
    made: dict[Value, Value] = {}

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        op: Any = node.op
        if node in signed.bare:
            op = op.replace(activation="none")
        if node in signed.layers and inputs[0] is not None:
            x = inputs[0]
            op, sign = _padded(op, made.setdefault(x, _sign(x)))
            inputs = (sign, *inputs[1:])
        if op is node.op:
            return with_inputs(node, inputs)
        replaced: tuple[Value, ...] = op.node(*inputs, label=node.label)
        return replaced

    return with_graph(model, graph.rebuild(visit), model.module.variables)


class _Signed:
    """Which layers can read signs.

    Attributes:
        layers: They.
        bare: Nodes that lose their ReLU for it.
    """

    def __init__(self, graph: Graph, layers: Collection[Node]) -> None:
        self._layers = layers
        self._readers: defaultdict[Value, list[Node]] = defaultdict(list)
        for node in graph.nodes():
            for value in node.inputs:
                if value is not None:
                    self._readers[value].append(node)
        self._ends = set(graph.outputs) | set(graph.updates.values())
        found = {layer: self._source(layer) for layer in layers}
        self.layers = {layer for layer, source in found.items() if source is not None}
        rectified = {n for n in found.values() if n and _activation(n) == "relu"}
        self.bare = rectified

    def _source(self, layer: Node) -> Node | None:
        """The node of the sums that a layer reads; None where it reads none."""
        value = layer.inputs[0]
        while value is not None and isinstance(value.op, MOVES):
            value = value.node.inputs[0]
        if value is None or not isinstance(value.op, SIGNED):
            return None
        kind = _activation(value.node)
        if kind == "none" or (kind == "relu" and self._only_signs(value)):
            return value.node
        return None

    def _only_signs(self, value: Value) -> bool:
        """Whether all that reads a value, moves left out, are these layers."""
        if value in self._ends:
            return False
        return all(
            (node in self._layers and value not in node.inputs[1:])
            or (isinstance(node.op, MOVES) and self._only_signs(Value(node)))
            for node in self._readers[value]
        )


def _sign(x: Value) -> Value:
    one, minus, zero = (constant(np.asarray(v, np.float32)) for v in (1, -1, 0))
    return StraightThrough()(
        Where()(GreaterEqual()(x, zero), one, minus),
        Clip(-1.0, 1.0)(x),
    )


def signs_read(node: Node, x: Value | None) -> tuple[Value, tuple[int, ...]] | None:
    """What signs are taken of, and the pads around them; None where x is real."""
    if not is_dense(node):
        return None
    pads = getattr(node.op, "pads", ())
    if x is not None and isinstance(x.op, Pad) and not any(pads):
        mode, around = (x.op.mode, x.op.value), _around(x.op)
        if mode != ("constant", 1.0) or around is None:
            return None
        pads = around
        x = x.node.inputs[0]
    elif any(pads):
        return None  # zeros around signs
    if x is None or not isinstance(x.op, StraightThrough):
        return None
    chosen = x.node.inputs[0]
    if chosen is None or not isinstance(chosen.op, Where):
        return None
    truth, *ends = chosen.node.inputs
    numbers = [v.op.array for v in ends if v and isinstance(v.op, Constant)]
    if truth is None or not isinstance(truth.op, GreaterEqual) or len(numbers) != 2:
        return None
    real, zero = truth.node.inputs
    known = zero is not None and isinstance(zero.op, Constant) and zero.op.array == 0
    is_sign = known and (numbers[0] == 1).all() and (numbers[1] == -1).all()
    return (real, pads) if real is not None and is_sign else None


def _around(pad: Pad) -> tuple[int, ...] | None:
    """Top, left, bottom, right of an image; None where other axes grow, too."""
    sizes = [size for size in pad.pads if isinstance(size, int)]
    if len(sizes) != 8 or any(sizes[::4] + sizes[3::4]) or min(sizes) < 0:
        return None
    return (*sizes[1:3], *sizes[5:7])


def _padded(op: object, sign: Value) -> tuple[Conv | Linear, Value]:
    """A layer without pads, and signs with those around."""
    assert isinstance(op, Conv | Linear)  # noqa: S101 - a dense layer
    if isinstance(op, Linear) or not any(op.pads):
        return op, sign
    top, left, bottom, right = op.pads
    around = Pad((0, top, left, 0, 0, bottom, right, 0), "constant", 1.0)
    return op.replace(pads=(0, 0, 0, 0)), around(sign)


def is_dense(node: Node) -> bool:
    """Whether every output of a layer reads all channels."""
    op = node.op
    return isinstance(op, Linear) or (isinstance(op, Conv) and op.groups == 1)


def weight_of(node: Node) -> str | None:
    """The name of the weight of a layer."""
    weight = node.inputs[1] if len(node.inputs) > 1 else None
    if weight is None or not isinstance(weight.op, Variable):
        return None
    return weight.op.key


def _activation(node: Node) -> str:
    return str(getattr(node.op, "activation", "none"))


def with_graph(
    model: Model,
    graph: Graph,
    variables: Mapping[str, VariableInfo],
    updates: Mapping[str, Value] | None = None,
) -> Model:
    """The model that infers otherwise; ``updates`` are what ``prepare`` computes."""
    functions = {**model.module.functions, INFER: graph}
    if updates:
        functions[PREPARE] = Graph((), (), (), dict(updates))
    return Model(Module(functions, variables, model.module.metadata))
