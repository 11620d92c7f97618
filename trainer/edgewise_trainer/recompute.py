"""Activations that are made again instead of kept (Chen et al., 2016).

The forward pass is cut into segments where little crosses from one to the next.  What
crosses is kept; what a segment makes for itself, and the backward pass reads again, is
made once more from what came into the segment, when the backward pass gets there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from edgewise.ir.graph import Constant, Graph, Leaf, Node, Value, Variable, with_inputs
from edgewise.ops import After
from edgewise.types import TensorType

SMALL = 1 << 14  # bytes that are not worth being made again
SLACK = 0.4  # of a segment, by which it may be larger so that less crosses


def recomputed(graph: Graph, sizes: Mapping[str, int], segments: int) -> Graph:
    """A training step that keeps less, and gives the same numbers.

    Args:
        graph: The step; its outputs are the end of the forward pass.
        sizes: Of its symbols, for which segments are made equal.
        segments: How many; what the last one makes is kept, as it is read at once.
    """
    forward = Graph((), graph.outputs, graph.output_names).nodes()
    steps = [node for node in forward if not isinstance(node.op, Leaf)]
    weights = _Weights(sizes)
    kept = _read_behind(graph, set(forward), weights)
    cut = _segments(steps, kept, weights, segments)
    whole = _crossing(steps, cut)
    own = {
        Value(node, index)
        for node in steps
        for index in range(len(node.types))
        if cut[node] < segments - 1 and _repeatable(node)
    }
    own = {v for v in own if v not in whole and weights(v) > SMALL}
    return _Remaking(graph, set(forward), _Segments(steps, cut, own)).result()


class _Weights:
    """Bytes of values at some sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes

    def __call__(self, value: Value) -> int:
        kind = value.kind
        return kind.bind(self._sizes).bytes if isinstance(kind, TensorType) else 0


class _Segments(NamedTuple):
    """How the forward pass is cut.

    Attributes:
        steps: Its nodes in order.
        cut: The segment of each.
        own: Values that no other segment reads, and that can be made again.
    """

    steps: Sequence[Node]
    cut: Mapping[Node, int]
    own: set[Value]


def _read_behind(graph: Graph, ahead: set[Node], weights: _Weights) -> list[Value]:
    """What the forward pass makes and others read, if it is large."""
    behind = [node for node in graph.nodes() if node not in ahead]
    read = dict.fromkeys(value for node in behind for value in node.inputs)
    return [
        value
        for value in read
        if value is not None and value.node in ahead
        if not isinstance(value.op, Leaf) and weights(value) > SMALL
    ]


def _segments(
    steps: Sequence[Node], kept: Sequence[Value], weights: _Weights, count: int
) -> dict[Node, int]:
    """The segment of each node: about equal in what is kept, cut where it is narrow."""
    place = {node: index for index, node in enumerate(steps)}
    made = [0] * len(steps)
    for value in kept:
        made[place[value.node]] += weights(value)
    sums = list(accumulate(made))
    width = _widths(steps, place, weights)
    cuts = []
    for number in range(1, count):
        low, high = ((number + s) * sums[-1] / count for s in (-SLACK, SLACK))
        near = [j for j, total in enumerate(sums) if low <= total <= high]
        if near:
            cuts.append(min(near, key=width.__getitem__))
    return {node: sum(cut < j for cut in cuts) for node, j in place.items()}


def _widths(
    steps: Sequence[Node], place: Mapping[Node, int], weights: _Weights
) -> list[int]:
    """Bytes that are made up to each node and read by later ones."""
    last: dict[Value, int] = {}
    for index, node in enumerate(steps):
        for value in node.inputs:
            if value is not None and value.node in place:
                last[value] = index
    change = [0] * (len(steps) + 1)
    for value, end in last.items():
        change[place[value.node]] += weights(value)
        change[end] -= weights(value)
    return list(accumulate(change))[: len(steps)]


def _crossing(steps: Sequence[Node], cut: Mapping[Node, int]) -> set[Value]:
    """Values that one segment makes and another reads."""
    return {
        value
        for node in steps
        for value in node.inputs
        if value is not None and cut.get(value.node, cut[node]) != cut[node]
    }


def _repeatable(node: Node) -> bool:
    op = node.op
    return not (op.random or op.dynamic or op.binds or op.objects or op.bodies())


class _Remaking:
    """One walk over a step, in which late readers are given copies.

    A copy waits for the last gradient that was made before the first reader of its
    segment: none is made before that, and none of the segment is needed for it.
    """

    def __init__(self, graph: Graph, ahead: set[Node], segments: _Segments) -> None:
        self._graph, self._ahead, self._segments = graph, ahead, segments
        self._copies: dict[Value, Value] = {}
        self._waiting: dict[Value, Value] = {}
        self._done: set[int] = set()
        self._token: Value | None = None  # the last gradient so far

    def result(self) -> Graph:
        """The step with copies."""
        graph, new = self._graph, dict[Value, Value]()
        for node in graph.nodes():
            made = [Value(node, index) for index in range(len(node.types))]
            if node in self._ahead or isinstance(node.op, Leaf):
                new.update(zip(made, made, strict=True))
                continue
            inputs = tuple(
                None if v is None else self._late(v, new) for v in node.inputs
            )
            found = with_inputs(node, inputs)
            new.update(zip(made, found, strict=True))
            if isinstance(found[0].kind, TensorType):
                self._token = found[0]
        return Graph(
            graph.inputs,
            graph.outputs,
            graph.output_names,
            {key: new[value] for key, value in graph.updates.items()},
            graph.binders,
        )

    def _late(self, value: Value, new: Mapping[Value, Value]) -> Value:
        """What a reader behind the forward pass reads."""
        if value not in self._segments.own:
            return new[value]
        number = self._segments.cut[value.node]
        if number not in self._done:
            self._done.add(number)
            if self._token is not None:
                self._remake(number, self._token)
        return self._copies.get(value, value)

    def _remake(self, number: int, token: Value) -> None:
        """Copies of all that a segment makes for itself; what none reads falls away."""
        steps, cut, own = self._segments
        self._waiting = {}
        for node in steps:
            results = [Value(node, index) for index in range(len(node.types))]
            if cut[node] != number or not own.intersection(results):
                continue
            inputs = [self._again(value, token) for value in node.inputs]
            if inputs == list(node.inputs) and inputs and inputs[0] is not None:
                inputs[0] = self._wait(inputs[0], token)
            copy = Node(node.op, tuple(inputs), node.types, node.label)
            for result in results:
                self._copies[result] = Value(copy, result.index)

    def _again(self, value: Value | None, token: Value) -> Value | None:
        """What a copy reads: a copy; or what was kept, when the time has come."""
        if value is None or isinstance(value.op, Variable | Constant):
            return value
        if value in self._segments.own:
            return self._copies[value]
        return self._wait(value, token)

    def _wait(self, value: Value, token: Value) -> Value:
        if value not in self._waiting:
            self._waiting[value] = After()(value, token)
        return self._waiting[value]
