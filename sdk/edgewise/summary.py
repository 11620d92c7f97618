"""A model as a table of plain text: what it computes, how large, how much work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from edgewise.errors import ConfigError, EdgewiseError
from edgewise.ir.binders import type_symbols
from edgewise.ir.graph import Graph, Leaf, Node, Value, Variable
from edgewise.ir.module import Role, VariableInfo

HEAD = ("op", "name", "output", "params", "MACs")
UNKNOWN = "-"
WIDEST = 72  # characters of what a node gives: sizes may take hundreds to tell


def summary(
    graph: Graph,
    variables: Mapping[str, VariableInfo],
    sizes: Mapping[str, int] | None = None,
) -> str:
    """One row for each node, and the totals; open sizes that are not given are 1."""
    nodes = [node for node in graph.nodes() if not isinstance(node.op, Leaf)]
    macs = multiply_adds(graph, sizes or {})
    rows = [HEAD]
    each: Sequence[int | None] = [None] * len(nodes) if macs is None else macs
    for node, work in zip(nodes, each, strict=True):
        outputs = _short(", ".join(map(str, node.types)))
        parameters = _count(variables[key] for key in _read_by(node))
        rows.append((node.op.name, node.label, outputs, f"{parameters:,}", _text(work)))
    total = _count(variables.values())
    work = None if macs is None else sum(macs)
    rows.append(("total", "", "", f"{total:,}", _text(work)))
    return _columns(rows)


def multiply_adds(graph: Graph, sizes: Mapping[str, int]) -> list[int] | None:
    """Multiply-adds of every node at these sizes, where open ones are 1.

    None where the graph wants larger sizes, or only a run knows how much it does.
    """
    found = frozenset().union(*(type_symbols(node.types) for node in graph.nodes()))
    opened = {name: sizes.get(name, 1) for name in found}
    try:
        bound = graph.bind(opened)
        return [_work(node) for node in bound.nodes() if not isinstance(node.op, Leaf)]
    except EdgewiseError:
        return None


def _work(node: Node) -> int:
    if node.op.bodies():
        raise ConfigError(f"{node}: only a run knows how often it runs its bodies")
    if node.op.objects:
        return 0
    inputs = tuple(None if value is None else value.type for value in node.inputs)
    outputs = tuple(Value(node, index).type for index in range(len(node.types)))
    return node.op.cost(inputs, outputs).macs


def _read_by(node: Node) -> set[str]:
    return {v.op.key for v in node.inputs if v and isinstance(v.op, Variable)}


def _count(variables: Iterable[VariableInfo]) -> int:
    return sum(
        math.prod(info.logical.dims)
        for info in variables
        if info.role is Role.PARAMETER
    )


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _text(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    """Texts to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if index > 2 else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
