"""Where a graph can run over bytes: its layers, and the values between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgewise.ir.graph import Graph, Leaf, Node, Value, Variable
from edgewise.ir.module import VariableInfo
from edgewise.ops.binary import Add, Mul
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.index import Gather
from edgewise.ops.matmul import Linear
from edgewise.ops.pool import MaxPool
from edgewise.ops.shape import Concat, Reshape, Slice, Transpose
from edgewise.passes.byte_steps import FUNCTIONS, is_mean
from edgewise.quant.weights import can_be_bytes
from edgewise.types import DType

PRODUCTS = (Linear, Conv, DepthwiseConv)
# What gives some of the numbers that it is given, and no others.
MOVES = (MaxPool, Reshape, Transpose, Slice, Concat, Gather)
RESIDUAL = 4
IMAGE = 4  # axes


class Sites:
    """The layers of a graph that can run over bytes.

    Attributes:
        layers: Their nodes, in order.
        names: A name for each: that of its weight, which fusing does not change.
        values: The values between them: what they read and make, and what steps between
            layers do.
    """

    def __init__(self, graph: Graph, variables: Mapping[str, VariableInfo]) -> None:
        nodes = graph.nodes()
        self.layers = [node for node in nodes if _is_layer(node, variables)]
        self.names = {node: _name(node) for node in self.layers}
        found: dict[Value, None] = {}
        for node in nodes:
            images = between(node)
            if node in self.names:
                found |= dict.fromkeys((*_read(node), Value(node)))
            elif is_move(node) and any(value in found for value in images):
                found |= dict.fromkeys((*images, Value(node)))
            elif images and all(value in found for value in images):
                found |= {Value(node): None}
        self.values = list(found)

    def of(self, layers: Sequence[Node], graph: Graph) -> set[Value]:
        """Values that become bytes where these layers do: for those that read them."""
        wanted: set[Value] = set()
        chosen, known = set(layers), set(self.values)
        for node in reversed(graph.nodes()):
            images = between(node)
            if node in chosen:
                wanted |= set(_read(node))
            elif Value(node) in wanted and known.issuperset(images):
                wanted |= set(images)
        return wanted & known


def between(node: Node) -> list[Value]:
    """The images that a step between layers is given; none where it is no such step."""
    if not _is_real(Value(node)):
        return []
    if is_move(node):
        return moved_by(node)
    alone = isinstance(node.op, FUNCTIONS) and len(node.inputs) == 1
    if is_pair(node) or is_mean(node) or alone:
        return [value for value in node.inputs if value is not None]
    return []


def is_move(node: Node) -> bool:
    """Whether a node moves numbers; looking up weights is no move, but a choice."""
    chosen = isinstance(node.op, Gather) and isinstance(moved_by(node)[0].op, Leaf)
    return isinstance(node.op, MOVES) and not chosen


def is_pair(node: Node) -> bool:
    """Whether a node adds or multiplies two images."""
    shapes = [value.type.shape for value in node.inputs if value is not None]
    return isinstance(node.op, Add | Mul) and all(len(s) == IMAGE for s in shapes)


def moved_by(node: Node) -> list[Value]:
    """The values that a move is given."""
    every = isinstance(node.op, Concat)
    inputs = node.inputs if every else node.inputs[:1]
    return [value for value in inputs if value is not None]


def _read(node: Node) -> list[Value]:
    """The image of a layer, and its residual."""
    inputs = [node.inputs[0], *node.inputs[RESIDUAL : RESIDUAL + 1]]
    return [value for value in inputs if value is not None]


def _is_real(value: Value) -> bool:
    return value.type.dtype is DType.F32


def _is_layer(node: Node, variables: Mapping[str, VariableInfo]) -> bool:
    if not isinstance(node.op, PRODUCTS) or not _is_real(Value(node)):
        return False
    weight = node.inputs[1]
    if weight is None or not isinstance(weight.op, Variable):
        return False
    x = node.inputs[0]
    if x is None or not isinstance(x.type.shape[-1], int):
        return False
    groups = node.op.groups if isinstance(node.op, Conv) else 1
    fours = groups == 1 or x.type.shape[-1] % (4 * groups) == 0
    return fours and can_be_bytes(variables[weight.op.key])


def _name(node: Node) -> str:
    weight = node.inputs[1]
    return weight.op.key if weight and isinstance(weight.op, Variable) else node.label
