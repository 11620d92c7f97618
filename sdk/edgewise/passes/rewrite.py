"""Rewrite rules and the driver that applies them until nothing changes."""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from edgewise.errors import InternalError
from edgewise.ir.graph import Graph, Inputs, Leaf, Node, Value, with_inputs
from edgewise.ir.op import Op
from edgewise.ir.pattern import Match, Pattern

logger = logging.getLogger(__name__)

MAX_SWEEPS = 64  # over a graph; and rewrites of one node in a sweep

Replacement: TypeAlias = Callable[..., "Value | None"]


class Rule(NamedTuple):
    """A pattern and what to put in its place.

    Attributes:
        name: For reports and messages.
        pattern: What it looks for.
        replace: Takes the captures by name; gives the new value; ``None`` declines.
    """

    name: str
    pattern: Pattern
    replace: Replacement


def rule(*patterns: Pattern) -> Callable[[Replacement], list[Rule]]:
    """Rules that put a function's result in place of each of ``patterns``.

    The function's parameters are the captures, by name.
    """

    def make(replace: Replacement) -> list[Rule]:
        name = getattr(replace, "__name__", "rule").strip("_")
        parameters = set(inspect.signature(replace).parameters)
        for pattern in patterns:
            if pattern.names() != parameters:
                raise InternalError(
                    f"rule {name} takes {sorted(parameters)}, but its pattern captures"
                    f" {sorted(pattern.names())}"
                )
        return [Rule(name, pattern, replace) for pattern in patterns]

    return make


class Rewriter:
    """Applies rules to graphs, the most inner nodes first."""

    def __init__(self, rules: Iterable[list[Rule]]) -> None:
        self._by_op: dict[type[Op], list[Rule]] = {}
        for group in rules:
            for one in group:
                for op in one.pattern.ops:
                    self._by_op.setdefault(op, []).append(one)

    def apply(self, graph: Graph) -> tuple[Graph, Counter[str]]:
        """The graph at rest, and how often each rule fired."""
        total: Counter[str] = Counter()
        fired: Counter[str] = Counter()
        for _ in range(MAX_SWEEPS):
            sweep = _Sweep(self._by_op, graph)
            graph, fired = graph.rebuild(sweep.visit), sweep.fired
            if not fired:
                return graph, total
            total += fired
        raise InternalError(f"rewrite rules never settle: {', '.join(sorted(fired))}")


class _Sweep:
    """One walk over a graph: the rules, and who reads what so far."""

    def __init__(self, by_op: dict[type[Op], list[Rule]], graph: Graph) -> None:
        self._by_op = by_op
        self._old_readers = graph.readers()
        self._readers: Counter[Value] = Counter()
        self.fired: Counter[str] = Counter()

    def visit(self, node: Node, inputs: Inputs) -> tuple[Value, ...]:
        """The node over new inputs, rewritten while any rule fits."""
        results = with_inputs(node, inputs)
        if len(results) == 1:
            results = (self._settle(results[0]),)
        for index, value in enumerate(results):
            self._readers[value] += self._old_readers.get(Value(node, index), 0)
        return results

    def _settle(self, value: Value) -> Value:
        names: list[str] = []
        while len(names) < MAX_SWEEPS:
            rewritten = self._rewrite(value, names)
            if rewritten is None:
                return value
            value = rewritten
        raise InternalError(f"rewrite rules never settle: {', '.join(names[-8:])}")

    def _rewrite(self, value: Value, names: list[str]) -> Value | None:
        for one in self._by_op.get(type(value.op), ()):
            for match in one.pattern.matches(value):
                if not self._alone(match):
                    continue
                result = one.replace(**match.captures)
                if result is None or not _fits(one, value, result):
                    continue
                logger.debug("%s: %s -> %s", one.name, value, result)
                if value.node.label:
                    _label(result, value.node.label)
                self.fired[one.name] += 1
                names.append(one.name)
                return result
        return None

    def _alone(self, match: Match) -> bool:
        """Whether nothing outside the match reads a value inside it."""
        inside = match.nodes[1:]
        reads = Counter(v for node in set(match.nodes) for v in node.inputs)
        return all(
            self._readers[Value(node)] <= reads[Value(node)]
            and not any(
                self._readers[Value(node, i)] for i in range(1, len(node.types))
            )
            for node in inside
        )


def _fits(one: Rule, value: Value, result: Value) -> bool:
    """Whether the result may stand where ``value`` stood."""
    old, new = value.type, result.type
    if old.dtype is not new.dtype or old.rank != new.rank:
        raise InternalError(f"rule {one.name} makes {new} of {old}")
    if old != new:
        # It broadcasts otherwise, or writes a size in a way that cannot be compared.
        logger.debug("%s declined: %s is not %s", one.name, new, old)
    return old == new


def _label(value: Value, label: str) -> None:
    """Name the nodes that a rule made after the node they replace."""
    stack = [value.node]
    while stack:
        node = stack.pop()
        if not node.label and not isinstance(node.op, Leaf):
            node.label = label
            stack.extend(v.node for v in node.inputs if v is not None)
