"""A graph whose layers run over bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    variable_value,
    with_inputs,
)
from edgewise.ir.op import Array
from edgewise.ops.byte_products import ByteConv, ByteDepthwiseConv, ByteLinear
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.pack import QUAD
from edgewise.ops.pad import Pad
from edgewise.ops.quantize import Dequantize, Quantize
from edgewise.ops.shape import Transpose
from edgewise.passes.byte_steps import Bytes, step
from edgewise.quant.grid import Grid
from edgewise.quant.sites import RESIDUAL, between, is_move, moved_by
from edgewise.quant.weights import Whole


class Layer(NamedTuple):
    """What a layer becomes.

    Attributes:
        weight: Its weight.
        scale: What the epilogue scales sums of real numbers by; None: nothing.
        shift: What it adds; None: nothing.
    """

    weight: Whole
    scale: Array | None
    shift: Array | None


class Rewrite:
    """One walk over a graph.

    Args:
        layers: What layers become, by their nodes.
        grids: The grid of every value that becomes bytes, of the old graph.
    """

    def __init__(self, layers: Mapping[Node, Layer], grids: Mapping[Value, Grid]):
        self._layers, self._grids = layers, grids
        self._bytes: dict[Value, tuple[Value, Grid]] = {}  # by new real values

    def apply(self, graph: Graph) -> Graph:
        """The new graph."""
        return graph.rebuild(self._visit)

    def _visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        layer = self._layers.get(node)
        if layer is not None:
            return (self._product(node, inputs, layer),)
        if Value(node) not in self._grids:
            return with_inputs(node, inputs)
        if is_move(node):
            return (self._moved(node, inputs),)
        images = between(node)
        if images and all(value in self._grids for value in images):
            return (self._step(node, inputs),)
        return with_inputs(node, inputs)

    def _step(self, node: Node, inputs: Inputs) -> Value:
        """What lies between layers, over bytes."""
        made = self._grids[Value(node)]
        given = []
        for value, old in zip(inputs, node.inputs, strict=True):
            if value is not None and old is not None:
                on = self._grids[old]
                given.append(Bytes(self._as_bytes(value, on), on.pair))
        result = step(node, given, made.pair)
        if result is None:
            raise InternalError(f"{node}: a step between layers that bytes cannot take")
        return self._real(result, made)

    def _moved(self, node: Node, inputs: Inputs) -> Value:
        """A move of bytes; all that it moves are on the grid of what it gives."""
        on = self._grids[Value(node)]
        count = len(moved_by(node))
        moved = [
            self._as_bytes(value, on) for value in inputs[:count] if value is not None
        ]
        made = node.op(*moved, *inputs[count:], label=node.label)
        return self._real(made, on)

    def _product(self, node: Node, inputs: Inputs, layer: Layer) -> Value:
        x, old = inputs[0], node.inputs[0]
        if x is None or old is None:
            raise InternalError(f"{node}: a layer without an image")
        on = self._grids[old]
        made, residual = self._grids.get(Value(node)), (*inputs, None)[RESIDUAL]
        factor = layer.weight.scale * np.float32(on.scale)
        scale = factor if layer.scale is None else factor * layer.scale
        ending: dict[str, Any] = {"x_zero": on.zero, "weight_bits": layer.weight.bits}
        if made is not None:
            ending |= {"y_type": "u8", "y_scale": made.scale, "y_zero": made.zero}
            if residual is not None:
                added = self._grids[(*node.inputs, None)[RESIDUAL]]  # type: ignore[index]  # there
                residual = self._as_bytes(residual, added)
                ending |= {"residual_scale": added.scale, "residual_zero": added.zero}
        op = layer_op(node, ending)
        info = layer.weight.info
        result: Value = op(
            filled(self._as_bytes(x, on), op),
            variable_value(info.key, info.type),
            constant(scale.astype(np.float32)),
            None if layer.shift is None else constant(layer.shift),
            residual,
            label=node.label,
        )
        return result if made is None else self._real(result, made)

    def _as_bytes(self, value: Value, on: Grid) -> Value:
        """A value on a grid; those that lie there already are taken as they are."""
        found = self._bytes.get(value)
        if found is not None and found[1] == on:
            return found[0]
        made = Quantize()(value, *on.pair.values())
        self._bytes[value] = made, on
        return made

    def _real(self, bytes_: Value, on: Grid) -> Value:
        """The real numbers that bytes stand for, for those that want them."""
        value = Dequantize()(bytes_, *on.pair.values())
        self._bytes[value] = bytes_, on
        return value


def filled(x: Value, op: Any) -> Value:
    """Bytes with channels in whole fours."""
    short = -_last(x) % QUAD
    if isinstance(op, ByteDepthwiseConv) or not short:
        return x
    if isinstance(x.op, Transpose) and x.node.inputs[0] is not None:
        # Plane by plane, as pixel by pixel takes ten times as long.
        planes = x.node.inputs[0]
        made: Value = x.op(_longer(planes, x.op.axes[-1], short), label=x.node.label)
        return made
    return _longer(x, x.type.rank - 1, short)


def _longer(x: Value, axis: int, more: int) -> Value:
    """Zeros behind an axis; weights there are 0 too."""
    ends = [more if a == axis else 0 for a in range(x.type.rank)]
    return Pad((*(0,) * len(ends), *ends))(x)


def _last(x: Value) -> int:
    size = x.type.shape[-1]
    if not isinstance(size, int):
        raise InternalError(f"{x}: channels that only a run knows")
    return size


def layer_op(node: Node, ending: dict[str, Any]) -> Any:
    """The layer's op over bytes."""
    op: Any = node.op
    channels = Value(node).type.shape[-1]
    ending |= {"channels": channels, "activation": op.activation}
    ending |= {"alpha": op.alpha, "beta": op.beta}
    if not isinstance(op, Conv | DepthwiseConv):
        return ByteLinear(**ending)
    names = ("kernel", "strides", "pads", "dilations")
    ending |= {name: getattr(op, name) for name in names}
    if isinstance(op, DepthwiseConv):
        return ByteDepthwiseConv(**ending)
    return ByteConv(**ending, groups=op.groups)


def reads(graphs: Collection[Graph]) -> Counter[str]:
    """How many nodes read each variable."""
    nodes = [node for graph in graphs for node in graph.nodes()]
    values = [value for node in nodes for value in node.inputs]
    values += [root for graph in graphs for root in graph.roots]
    ops = [value.op for value in values if value is not None]
    return Counter(op.key for op in ops if isinstance(op, Variable))
