"""A graph whose layers read images of 16 bits: as two images of bytes.

Sums of products of the bytes above, times 256, and of those below are sums of products
of the numbers, exactly.  What lies between layers stays in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    constant,
    variable_value,
    with_inputs,
)
from edgewise.ir.op import Array
from edgewise.ops.quantize import BytePlanes
from edgewise.quant.grid import WIDE_LEVELS, grid
from edgewise.quant.ranges import Range
from edgewise.quant.rewrite import Layer, filled, layer_op
from edgewise.quant.sites import RESIDUAL

BYTE = 256
MIDDLE = 1 << 15  # what numbers with a sign count from


class Planes:
    """One walk over a graph.

    Args:
        layers: What layers become, by their nodes.
        ranges: Of the images that they read, of the old graph.
        symmetric: Whether zero lies in the middle of them.
    """

    def __init__(
        self,
        layers: Mapping[Node, Layer],
        ranges: Mapping[Value, Range],
        symmetric: bool,
    ) -> None:
        self._layers, self._ranges, self._symmetric = layers, ranges, symmetric
        self._made: dict[Value, tuple[Value, ...]] = {}  # by old real values

    def apply(self, graph: Graph) -> Graph:
        """The new graph."""
        return graph.rebuild(self._visit)

    def _visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        layer = self._layers.get(node)
        if layer is None:
            return with_inputs(node, inputs)
        x, old = inputs[0], node.inputs[0]
        if x is None or old is None:
            raise InternalError(f"{node}: a layer without an image")
        ends, symmetric = self._ranges[old], self._symmetric
        on = grid(*ends, symmetric=symmetric, levels=WIDE_LEVELS)
        if old not in self._made:  # once, whoever reads them
            self._made[old] = BytePlanes(on.scale, on.zero - MIDDLE).node(x)
        above, below = self._made[old]
        factor = layer.weight.scale * np.float32(on.scale)
        scale = factor if layer.scale is None else factor * layer.scale
        op = layer_op(node, {"weight_bits": layer.weight.bits})
        first = op.replace(x_zero=on.zero % BYTE, activation="none")
        y = _product(layer, first, below, scale, None, (*inputs, None)[RESIDUAL])
        shift = None if layer.shift is None else constant(layer.shift)
        last, more = op.replace(x_zero=on.zero // BYTE), scale * np.float32(BYTE)
        return (_product(layer, last, above, more, shift, y, node.label),)


def _product(
    layer: Layer,
    op: Any,
    x: Value,
    scale: Array,
    shift: Value | None,
    added: Value | None,
    label: str = "",
) -> Value:
    """A layer over one of the two images, in float32."""
    info = layer.weight.info
    weight = variable_value(info.key, info.type)
    factors = constant(scale.astype(np.float32))
    result: Value = op(filled(x, op), weight, factors, shift, added, label=label)
    return result
