"""Transposes sink towards the outputs, meet their inverses and vanish.

The importer wraps every image operator in a transpose to channels-last and one back.
Here a transpose moves behind whatever does the same work on permuted axes, so that
whole regions run channels-last and only the borders of the graph move data.
"""

from __future__ import annotations

from collections import Counter

from edgewise.ir.graph import Graph, Inputs, Node, Value, with_inputs
from edgewise.ops.shape import Reshape, Transpose
from edgewise.passes.layout_sink import SINKS
from edgewise.passes.permute import compose, moves_ones_only, permutation

MAX_SWEEPS = 8


def layout(graph: Graph) -> tuple[Graph, Counter[str]]:
    """The graph with its transposes sunk, cancelled, or made reshapes."""
    total: Counter[str] = Counter()
    for _ in range(MAX_SWEEPS):
        done: Counter[str] = Counter()
        graph = _sweep(graph, done)
        total += done
        if not done:
            break
    graph, reshaped = _reshaped(graph)
    return graph, total + reshaped


def _sweep(graph: Graph, done: Counter[str]) -> Graph:
    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        results = with_inputs(node, inputs)
        if len(results) != 1:
            return results
        if isinstance(node.op, Transpose):
            merged = _merged(node, inputs)
            done["cancelled"] += merged is not None
            return results if merged is None else (merged,)
        sink = SINKS.get(node.op.name)
        moved = None if sink is None else sink(node, inputs)
        if moved is None or moved.type != node.types[0]:
            return results
        done["sunk"] += 1
        return (moved,)

    graph = graph.rebuild(visit)
    done += Counter()  # drops the zeros
    return graph


def _merged(node: Node, inputs: Inputs) -> Value | None:
    """A transpose of a transpose as one, or none."""
    outer, source = node.op, inputs[0]
    if not isinstance(outer, Transpose) or source is None:
        return None
    inner = permutation(source)
    if inner is None:
        return source if outer.axes == tuple(range(len(outer.axes))) else None
    axes, x = compose(inner, outer.axes), source.node.inputs[0]
    if x is None or axes == tuple(range(len(axes))):
        return x
    return Transpose(axes)(x, label=node.label)


def _reshaped(graph: Graph) -> tuple[Graph, Counter[str]]:
    """Transposes that only move axes of size 1 as reshapes, which move nothing."""
    done: Counter[str] = Counter()

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        op, x = node.op, inputs[0] if inputs else None
        if x is None or not isinstance(op, Transpose):
            return with_inputs(node, inputs)
        if not moves_ones_only(x.type.shape, op.axes):
            return with_inputs(node, inputs)
        done["reshaped"] += 1
        return (Reshape(Value(node).type.shape)(x, label=node.label),)

    return graph.rebuild(visit), done
