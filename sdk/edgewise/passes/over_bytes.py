"""Graphs that other tools quantised, over the bytes that their numbers stand for.

Such graphs say ``Quantize(Conv(Dequantize(x), Dequantize(w)))``, or ``QLinearConv``.
Here both become one product over bytes: sums are exact, no real number lies between.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

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
from edgewise.ir.module import Module
from edgewise.ops.binary import Mul
from edgewise.ops.choose import Cast
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.index import Gather
from edgewise.ops.integer import Requantize
from edgewise.ops.matmul import Linear
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.ops.pad import Pad
from edgewise.ops.pool import MaxPool
from edgewise.ops.quantize import Dequantize, Quantize
from edgewise.ops.shape import Concat, Expand, Reshape, Slice, Tile, Transpose
from edgewise.passes import fuse
from edgewise.passes.byte_steps import Bytes, Pair, bytes_of
from edgewise.passes.byte_weights import ByteWeights, Weight
from edgewise.passes.integer_products import (
    BYTES,
    byte_op,
    in_fours,
    product_of_sums,
)
from edgewise.passes.known import Known
from edgewise.passes.real_sums import cast_sums, scaled_sums
from edgewise.passes.rewrite import Rewriter
from edgewise.types import DType

PRODUCTS = (Conv, DepthwiseConv, Linear)
# What gives some of the numbers that it is given, and no others.
MOVES = (MaxPool, Reshape, Transpose, Slice, Concat, Gather, Pad, Expand, Tile)


def over_bytes(module: Module) -> tuple[Module, Counter[str]]:
    """The module with products over bytes where it has them over such numbers."""
    done: Counter[str] = Counter()
    known, weights = Known(module.variables), ByteWeights(set(module.variables))
    functions = {
        name: _Walk(known, weights, graph, done).apply(graph)
        for name, graph in module.functions.items()
    }
    if not done:
        return module, done
    found = {**module.variables, **weights.variables}
    read = {
        node.op.key
        for graph in functions.values()
        for node in graph.nodes()
        if isinstance(node.op, Variable)
    }
    variables = {key: info for key, info in found.items() if key in read}
    return Module(functions, variables, module.metadata), done


class _Walk:
    """One walk over a graph: the bytes behind real numbers so far."""

    def __init__(
        self, known: Known, weights: ByteWeights, graph: Graph, done: Counter[str]
    ) -> None:
        self._known, self._weights, self._done = known, weights, done
        self._readers = graph.readers()
        self._bytes: dict[Value, Bytes] = {}  # by new real values

    def apply(self, graph: Graph) -> Graph:
        """The new graph."""
        graph = graph.rebuild(self._visit)
        # Products that are new to the graph take over what follows them.
        graph, done = Rewriter((fuse.added, fuse.activation)).apply(graph)
        self._done.update(done)
        return graph

    def _visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        made: Value | None = None
        if isinstance(node.op, Dequantize):
            made = self._real(node, inputs)
        elif isinstance(node.op, Quantize):
            made = self._quantized(node, inputs)
        elif isinstance(node.op, MOVES):
            made = self._moved(node, inputs)
        elif isinstance(node.op, PRODUCTS):
            made = self._product(node, inputs)
        elif isinstance(node.op, Requantize):
            made = product_of_sums(node, inputs, self._known, self._weights)
            self._done["bytes of sums"] += made is not None
        elif isinstance(node.op, Cast):
            made = cast_sums(node, inputs, self._known, self._weights)
            self._done["products"] += made is not None
        elif isinstance(node.op, Mul):
            made = self._scaled(node, inputs)
        if made is None or made.type != node.types[0]:
            return with_inputs(node, inputs)
        return (made,)

    def _pair(self, node: Node, inputs: Inputs, kind: DType) -> Pair | None:
        """The one scale and zero point of a tensor."""
        op: Any = node.op
        scale, zero = (self._known.number(value) for value in inputs[1:3])
        if kind not in BYTES or op.block or scale is None or zero is None:
            return None
        real = inputs[1].type.dtype if inputs[1] else None
        return Pair(kind, scale, int(zero)) if real is DType.F32 and scale > 0 else None

    def _real(self, node: Node, inputs: Inputs) -> Value | None:
        """Real numbers, of which the bytes are remembered."""
        (value,) = with_inputs(node, inputs)
        q = inputs[0]
        pair = None if q is None else self._pair(node, inputs, q.type.dtype)
        if q is not None and pair is not None:
            self._bytes[value] = Bytes(q, pair)
        return value

    def _quantized(self, node: Node, inputs: Inputs) -> Value | None:
        """Bytes that are there already, or that the product before makes itself."""
        x, old = inputs[0], node.inputs[0]
        pair = self._pair(node, inputs, Value(node).type.dtype)
        if x is None or old is None or pair is None:
            return None
        found = self._bytes.get(x)
        if found is not None and found[1] == pair:
            self._done["quantized again"] += 1
            return found[0]
        if self._readers[old] != 1:
            return None
        if isinstance(x.op, fuse.BYTE_PRODUCTS):
            return self._ended(x, pair)
        made = bytes_of(x, pair, self._known, self._bytes)
        self._done["steps between products"] += made is not None
        return made

    def _ended(self, product: Value, pair: Pair) -> Value | None:
        """A product that makes bytes of its sums itself."""
        op: Any = product.op
        *given, residual = product.node.inputs
        if op.y_type != "f32":
            return None
        ending = {
            "y_type": pair.dtype.value,
            "y_scale": pair.scale,
            "y_zero": pair.zero,
        }
        if residual is not None:
            found = self._bytes.get(residual)
            if found is None or found[1].dtype is not pair.dtype:
                return None
            residual, added = found
            ending |= {"residual_scale": added.scale, "residual_zero": added.zero}
        self._done["bytes of sums"] += 1
        made = op.replace(**ending)
        result: Value = made(*given, residual, label=product.node.label)
        return result

    def _moved(self, node: Node, inputs: Inputs) -> Value | None:
        """A move of bytes in place of the numbers that they stand for."""
        every = isinstance(node.op, Concat)
        moved = [v for v in (inputs if every else inputs[:1]) if v is not None]
        found = [self._bytes.get(value) for value in moved]
        pairs = {each[1] for each in found if each is not None}
        if None in found or len(pairs) != 1:
            return None
        (pair,), bytes_ = pairs, [each[0] for each in found if each is not None]
        op = _padded(node.op, pair) if isinstance(node.op, Pad) else node.op
        if op is None:
            return None
        made = op(*bytes_, *inputs[len(moved) :], label=node.label)
        (scale, zero) = moved[0].node.inputs[1:3]
        value = Dequantize(0)(made, scale, zero)
        self._bytes[value] = Bytes(made, pair)
        self._done[f"{node.op.name} of bytes"] += 1
        return value

    def _product(self, node: Node, inputs: Inputs) -> Value | None:
        """A product over the bytes that its image and its weight stand for."""
        x, packed, scale, shift, residual = (*inputs, None, None, None)[:5]
        found = None if x is None else self._bytes.get(x)
        if found is None or packed is None:
            return None
        bytes_, pair = found
        weight = self._weight(packed)
        op = None if weight is None else byte_op(node.op, bytes_, pair.zero)
        if weight is None or op is None:
            return None
        factor: Value = constant(weight.scale * np.float32(pair.scale))
        if scale is not None:
            factor = Mul()(factor, scale)
        self._done["products"] += 1
        made = op.replace(weight_bits=weight.bits)
        result: Value = made(
            in_fours(bytes_, made),
            weight.value,
            factor,
            self._stored(shift),
            residual,
            label=node.label,
        )
        return result

    def _scaled(self, node: Node, inputs: Inputs) -> Value | None:
        """A product that nothing else reads, and its factor as one."""
        for at, product in enumerate(inputs):
            old, factor = node.inputs[at], inputs[1 - at]
            if product is None or old is None or factor is None:
                continue
            made = scaled_sums(product, factor)
            if made is not None and self._readers[old] == 1:
                return made
        return None

    def _weight(self, packed: Value) -> Weight | None:
        """The weight that a pack op is given, where it is made of whole numbers."""
        packing = packed.op
        if not isinstance(packing, PackPanels | PackTaps):
            return None
        whole = self._known.whole(packed.node.inputs[0])
        return None if whole is None else self._weights.packed(whole, packing)

    def _stored(self, shift: Value | None) -> Value | None:
        """A bias, as the numbers that it is made of where those are whole."""
        if shift is None or isinstance(shift.op, Variable | Constant):
            return shift
        array = self._known.array(shift)
        return shift if array is None else constant(array)


def _padded(op: Any, pair: Pair) -> Any:
    """The op with a byte around; ``None`` where none stands for what it has."""
    if op.mode != "constant":
        return op
    value = np.asarray(op.value, np.float32)
    byte = pair.bytes_of(value)
    near = pair.numbers()[int(byte)]
    return op.replace(value=float(byte)) if near == value else None
