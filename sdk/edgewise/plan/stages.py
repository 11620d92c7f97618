"""A graph cut where sizes become known: each stage is a graph that can be planned.

What a stage computes needs no size that the stage finds; sizes are found by its
actions, the graph's binders, which run after the rest of it, one by one, in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgewise.ir.binders import given_by, type_symbols
from edgewise.ir.graph import (
    Constant,
    Graph,
    Leaf,
    Node,
    Value,
    Variable,
    input_value,
)
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT


class Action(NamedTuple):
    """A binder: what it is, and the numbers of the values it reads and makes.

    Attributes:
        node: Its node, as the graph has it.
        reads: Kept values that it reads; ``ABSENT`` for an optional input left out.
        writes: Kept values that it makes.
        reason: What it is that only a run knows.
    """

    node: Node
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    reason: str


class Stage(NamedTuple):
    """A part of a graph, and the sizes that are known after it.

    Attributes:
        graph: What is computed; its inputs and outputs are kept values.
        reads: Numbers of the inputs among the kept values.
        writes: Numbers of the outputs.
        actions: What then runs in Python and finds sizes.
        drops: Kept values that no later stage reads.
    """

    graph: Graph
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    actions: tuple[Action, ...]
    drops: tuple[int, ...]

    def symbols(self) -> frozenset[str]:
        """What a plan of the stage needs to know."""
        found: frozenset[str] = frozenset()
        for node in self.graph.nodes():
            found |= type_symbols(node.types)
            if not isinstance(node.op, Leaf):
                found |= node.op.symbols()
        return found


class Stages(NamedTuple):
    """A graph in stages.

    Attributes:
        stages: In order.
        kept: How many values are kept between them; the graph's inputs come first.
        outputs: Kept values that are the graph's outputs.
        leaves: Kept values that are constants or variables, with their nodes.
    """

    stages: tuple[Stage, ...]
    kept: int
    outputs: tuple[int, ...]
    leaves: tuple[tuple[int, Node], ...]


class _Part:
    """A stage while it is collected."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.actions: list[Node] = []
        self.found: frozenset[str] = frozenset()

    def waits_for(self, node: Node) -> bool:
        """Whether a node needs what the actions make or find."""
        if not self.actions:
            return False
        if not self.found.isdisjoint(type_symbols(node.types) | node.op.symbols()):
            return True
        return any(v is not None and v.node in self.actions for v in node.inputs)


def cut(graph: Graph) -> Stages:
    """The stages of a graph with binders: as few as they allow."""
    return _Cutter(graph, _parts(graph)).stages()


def _parts(graph: Graph) -> list[_Part]:
    binders = {value.node for value in graph.binders}
    known = type_symbols([value.kind for value in graph.inputs])
    parts = [_Part()]
    for node in graph.nodes():
        if isinstance(node.op, Leaf):
            continue
        if node in binders:
            found = given_by(node, known)
            parts[-1].actions.append(node)
            parts[-1].found |= found
            known |= found
            continue
        if parts[-1].waits_for(node):
            parts.append(_Part())
        parts[-1].nodes.append(node)
    return parts


class _Cutter:
    """Numbers the values that are kept, and makes a graph of every part."""

    def __init__(self, graph: Graph, parts: list[_Part]) -> None:
        self._graph, self._parts = graph, parts
        self._home = {
            node: index for index, part in enumerate(parts) for node in part.nodes
        }
        self._numbers = {value: n for n, value in enumerate(graph.inputs)}
        self._last: dict[int, int] = dict.fromkeys(self._numbers.values(), 0)
        for index, part in enumerate(parts):
            for value in _read(part.nodes):
                self._cross(value, index)
            for node in part.actions:
                for value in (*_read([node]), *_made(node)):
                    self._keep(value, index)
        for value in graph.updates.values():
            self._cross(value, len(parts) - 1)
        for value in graph.outputs:
            self._keep(value, len(parts))

    def _cross(self, value: Value, index: int) -> None:
        """Keep what part ``index`` reads of another; constants are in its own graph."""
        if isinstance(value.op, Constant | Variable):
            return
        if self._home.get(value.node) != index:
            self._keep(value, index)

    def _keep(self, value: Value, until: int) -> None:
        number = self._numbers.setdefault(value, len(self._numbers))
        self._last[number] = max(until, self._last.get(number, 0))

    def stages(self) -> Stages:
        """All of it."""
        return Stages(
            tuple(self._stage(index) for index in range(len(self._parts))),
            len(self._numbers),
            tuple(self._numbers[value] for value in self._graph.outputs),
            tuple(
                (number, value.node)
                for value, number in self._numbers.items()
                if isinstance(value.op, Constant | Variable)
            ),
        )

    def _stage(self, index: int) -> Stage:
        part = self._parts[index]
        inputs: dict[Value, Value] = {}
        new: dict[Value, Value] = {}

        def local(value: Value | None) -> Value | None:
            if value is None or isinstance(value.op, Constant | Variable):
                return value
            if value in new:
                return new[value]
            if value not in inputs:
                inputs[value] = input_value(f"v{self._numbers[value]}", value.kind)
            return inputs[value]

        for node in part.nodes:
            read = tuple(map(local, node.inputs))
            fresh = Node(node.op, read, node.types, node.label)
            new |= {value: Value(fresh, value.index) for value in _made(node)}
        made = [value for value in new if value in self._numbers]
        updates: dict[str, Value] = {}
        if index == len(self._parts) - 1:
            found = {key: local(v) for key, v in self._graph.updates.items()}
            updates = {key: value for key, value in found.items() if value is not None}
        writes = tuple(self._numbers[value] for value in made)
        graph = Graph(
            tuple(inputs.values()),
            tuple(new[value] for value in made),
            tuple(f"v{number}" for number in writes),
            updates,
        )
        return Stage(
            graph,
            tuple(self._numbers[value] for value in inputs),
            writes,
            tuple(map(self._action, part.actions)),
            tuple(n for n, last in self._last.items() if last == index),
        )

    def _action(self, node: Node) -> Action:
        found = sorted(frozenset(node.op.gives()) | type_symbols(node.types))
        reads = tuple(ABSENT if v is None else self._numbers[v] for v in node.inputs)
        writes = tuple(self._numbers[value] for value in _made(node))
        verb = "reads" if node.op.gives() else "decides"
        reason = f"{node.op.name} {node.label!r} {verb} {', '.join(found)}"
        return Action(node, reads, writes, reason)


def _read(nodes: Iterable[Node]) -> Iterator[Value]:
    return (value for node in nodes for value in node.inputs if value is not None)


def _made(node: Node) -> Iterator[Value]:
    return (Value(node, index) for index in range(len(node.types)))
