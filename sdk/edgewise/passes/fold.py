"""Compute at home what depends on constants only."""

from __future__ import annotations

from collections import Counter

from edgewise.ir.graph import (
    Constant,
    Graph,
    Inputs,
    Leaf,
    Node,
    Value,
    constant,
    with_inputs,
)
from edgewise.ir.op import Array
from edgewise.ir.reference import outputs
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.ops.quantize import Dequantize
from edgewise.types import TensorType


def fold(
    graph: Graph, limit: int, *, weights: bool = True
) -> tuple[Graph, Counter[str]]:
    """The graph with constants for what they decide, up to ``limit`` bytes each.

    Variables are not constants: they change in training.  A result that is no larger
    than what it is made of is folded whatever its size.  Without ``weights``, those
    made of small whole numbers stay: products may take the whole numbers.
    """
    done: Counter[str] = Counter()

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        results = with_inputs(node, inputs)
        kept = not weights and isinstance(node.op, Dequantize) and inputs[0]
        if (kept and kept.type.rank > 1) or not _foldable(node, inputs, limit):
            return results
        done[node.op.name] += 1
        arrays = evaluate_node(node, inputs)
        return tuple(constant(array, node.label) for array in arrays)

    return graph.rebuild(visit), done


def _foldable(node: Node, inputs: Inputs, limit: int) -> bool:
    op = node.op
    if isinstance(op, Leaf | PackPanels | PackTaps):
        return False
    if op.random or op.binds or op.objects:
        return False
    if not all(value is None or isinstance(value.op, Constant) for value in inputs):
        return False
    given = [value.type for value in inputs if value is not None]
    made = [type_ for type_ in node.types if isinstance(type_, TensorType)]
    if any(type_.is_object for type_ in (*given, *made)):
        return False  # no type tells how long texts are, nor how long they take
    if op.symbols() or not all(type_.is_static for type_ in node.types):
        return False
    needed = sum(type_.bytes for type_ in made)
    return needed <= max(limit, sum(type_.bytes for type_ in given))


def evaluate_node(node: Node, inputs: Inputs) -> tuple[Array, ...]:
    """The outputs of a node over constants, by its reference."""
    arrays = [
        value.op.array if value is not None and isinstance(value.op, Constant) else None
        for value in inputs
    ]
    return outputs(node.op, arrays, node.types)
