"""Where channels go in a graph: what removing one takes along.

One walk gives every axis of every value the channels that lie along it, and ties those
that an op holds against each other.  What an op is not known to do with channels pins
them: they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from edgewise.compress.moves import MOVES
from edgewise.compress.ties import Labels, Ties, none_of
from edgewise.ir.graph import Graph, Node, Value, Variable
from edgewise.ir.module import VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.ops.activation import Activated
from edgewise.ops.binary import Binary
from edgewise.ops.choose import Cast, Clip
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.matmul import Linear
from edgewise.ops.norm import BatchNorm, BatchNormFold, ScaleShift
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.ops.pool import AveragePool, MaxPool
from edgewise.ops.unary import Unary


class Layer(NamedTuple):
    """What makes channels.

    Attributes:
        weight: The name of its weight.
        axis: The logical axis of the weight along which they lie.
        channels: They.
    """

    weight: str
    axis: int
    channels: Array


class Follower:
    """One walk over a graph.

    Attributes:
        ties: What goes together.
        labels: Channels along every axis of every value; of variables, and of what
            packs them, along those of the logical tensor.
        layers: What makes channels.
    """

    def __init__(self, graph: Graph, variables: Mapping[str, VariableInfo]) -> None:
        self.ties, self.layers = Ties(), list[Layer]()
        self.labels: dict[Value, Labels] = {}
        self._variables = variables
        self._known: dict[str, Labels] = {}
        for node in graph.nodes():
            for index, found in enumerate(self._follow(node)):
                self.labels[Value(node, index)] = found
        for value in graph.roots:
            self.ties.pin(self.labels[value])

    def of(self, value: Value | None) -> Labels:
        """Channels along the axes of a value; none of one that is absent."""
        return () if value is None else self.labels[value]

    def last(self, value: Value | None) -> Array | None:
        """Those along the last axis."""
        return self.of(value)[-1] if self.of(value) else None

    def _follow(self, node: Node) -> tuple[Labels, ...]:
        if isinstance(node.op, Variable):
            return (self._variable(node.op.key),)
        rule = next(
            (r for kind, r in _RULES.items() if isinstance(node.op, kind)), None
        )
        found = None if rule is None else rule(self, node, node.op)
        if found is None:
            for value in node.inputs:
                self.ties.pin(self.of(value))
            found = none_of(Value(node))
        return (found,) * len(node.types)

    def _variable(self, key: str) -> Labels:
        if key not in self._known:
            logical = self._variables[key].logical
            self._known[key] = tuple(self.ties.fresh(size) for size in logical.dims)
        return self._known[key]

    def packing(self, weight: Value) -> PackPanels | PackTaps | None:
        """How a weight is packed."""
        op: Op | None = weight.op
        if isinstance(op, Variable):
            op = self._variables[op.key].packing
        return op if isinstance(op, PackPanels | PackTaps) else None

    def along(self, channels: Array | None, vectors: tuple[Value | None, ...]) -> None:
        """Tie vectors over channels to them."""
        for value in vectors:
            if value is not None and value.type.shape != (1,):
                self.ties.tie(channels, self.last(value))


def _product(at: Follower, node: Node, op: Any) -> Labels | None:
    x, weight, *rest = node.inputs
    assert x is not None and weight is not None  # noqa: S101, PT018 - inferred
    packing, logical = at.packing(weight), at.of(weight)
    groups = getattr(op, "groups", 1)
    if not isinstance(packing, PackPanels) or packing.batch or groups > 1:
        return None
    out, inner = packing.axes[-1], packing.axes[-2]
    if isinstance(op, Linear) and len(logical) > 2:
        return None
    at.ties.pin([c for j, c in enumerate(logical) if j not in (out, inner)])
    at.ties.tie(at.last(x), logical[inner])
    return _made(at, node, out, rest)


def _made(at: Follower, node: Node, axis: int, rest: list[Value | None]) -> Labels:
    """What a layer makes, and what is tied to that by its epilogue."""
    weight = node.inputs[1]
    assert weight is not None  # noqa: S101 - inferred
    channels = at.of(weight)[axis]
    source = weight if isinstance(weight.op, Variable) else weight.node.inputs[0]
    if channels is not None and source is not None:
        if isinstance(source.op, Variable) and isinstance(node.op, Linear | Conv):
            at.layers.append(Layer(source.op.key, axis, channels))
        else:
            at.ties.pin((channels,))
    scale, shift, residual = (*rest, None, None, None)[:3]
    at.along(channels, (scale, shift))
    if residual is not None:
        at.ties.tie(channels, at.last(residual))
    return (*none_of(Value(node))[:-1], channels)


def _depthwise(at: Follower, node: Node, op: Any) -> Labels:
    del op
    x, weight, *rest = node.inputs
    logical = at.of(weight)
    at.ties.pin(logical[1:])
    at.ties.tie(at.last(x), logical[0])
    scale, shift, residual = (*rest, None, None, None)[:3]
    at.along(logical[0], (scale, shift))
    if residual is not None:
        at.ties.tie(logical[0], at.last(residual))
    return (*none_of(Value(node))[:-1], logical[0])


def _same(at: Follower, node: Node, op: Any) -> Labels:
    del op
    return at.of(node.inputs[0])


def _broadcast(at: Follower, node: Node, op: Any) -> Labels:
    """Axes that are held against each other lose the same channels."""
    del op
    result: list[Array | None] = []
    shape = Value(node).type.shape
    operands = [(at.of(v), v.type.shape) for v in node.inputs if v is not None]
    for back in range(len(shape), 0, -1):
        there = [(c[-back], sizes[-back]) for c, sizes in operands if len(c) >= back]
        full = [channels for channels, size in there if size == shape[-back]]
        at.ties.pin([channels for channels, size in there if size != shape[-back]])
        for other in full[1:]:
            at.ties.tie(full[0], other)
        # Of none is that size where only the run knows which of two it will be.
        lost = not full or any(channels is None for channels in full)
        result.append(None if lost else full[0])
    return tuple(result)


def _vectors(at: Follower, node: Node, op: Any) -> Labels:
    del op
    first = at.last(node.inputs[0])
    at.along(first, node.inputs[1:])
    return (first,)


def _normed(at: Follower, node: Node, op: Any) -> Labels:
    found = at.of(node.inputs[0])
    at.along(found[op.axis], node.inputs[1:])
    return found


def _moved(at: Follower, node: Node, op: Any) -> Labels:
    rule = next(rule for kind, rule in MOVES.items() if isinstance(op, kind))
    return rule(at.ties, [at.of(value) for value in node.inputs], node, op)


def _packed(at: Follower, node: Node, op: Any) -> Labels:
    del op
    return at.of(node.inputs[0])


_RULES: dict[type[Op] | tuple[type[Op], ...], Callable[..., Labels | None]] = {
    (Linear, Conv): _product,
    DepthwiseConv: _depthwise,
    (Unary, Activated, Cast, Clip, MaxPool, AveragePool): _same,
    Binary: _broadcast,
    BatchNormFold: _vectors,
    (BatchNorm, ScaleShift): _normed,
    tuple(MOVES): _moved,
    (PackPanels, PackTaps): _packed,
}
