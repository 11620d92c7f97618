"""Compute equal nodes once."""

from __future__ import annotations

from collections import Counter

from edgewise.ir.graph import Graph, Inputs, Node, Value, with_inputs
from edgewise.ir.op import Op


def share(graph: Graph) -> tuple[Graph, Counter[str]]:
    """The graph with one node for all that have equal ops and equal inputs.

    Constants of equal bytes are equal; ops that draw at random never are.
    """
    seen: dict[tuple[Op, Inputs], tuple[Value, ...]] = {}
    done: Counter[str] = Counter()

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        results = with_inputs(node, inputs)
        if node.op.random:
            return results
        kept = seen.setdefault((node.op, inputs), results)
        if kept[0].node is not results[0].node:
            done[node.op.name] += 1
        return kept

    return graph.rebuild(visit), done
