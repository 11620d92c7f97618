"""A model in two parts: what is never trained, and what learns from its features."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.errors import ConfigError
from edgewise.ir.graph import (
    Graph,
    Input,
    Inputs,
    Node,
    Value,
    input_value,
    with_inputs,
)
from edgewise.ir.leaf import Leaf
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise_trainer.names import INFER
from edgewise_trainer.parts import part
from edgewise_trainer.selection import layers

FEATURES = "features"


class Halves(NamedTuple):
    """A model cut in two.

    Attributes:
        front: Inputs to features.
        back: Features to outputs; its parameters have the names of the whole.
    """

    front: Model
    back: Model


def halves(model: Model, cut: str) -> Halves:
    """The model before and behind a value.

    Args:
        model: The whole.
        cut: Name of a tensor of the source model; or ``"last:K"``: what goes into the
            last K layers with weights.

    Raises:
        ConfigError: There is no such tensor, or something goes past it.
    """
    graph = model.module.functions[INFER]
    place = _place(model.module, cut)
    features = input_value(FEATURES, place.type)

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if node is place.node:
            return (features,)
        return with_inputs(node, inputs)

    rebuilt = graph.rebuild(visit)
    names = graph.output_names
    back = Graph((features,), rebuilt.outputs, names, {}, rebuilt.binders)
    past = [
        node.op.key
        for node in Graph((), back.roots, ("",) * len(back.roots)).nodes()
        if isinstance(node.op, Input) and node is not features.node
    ]
    if past:
        raise ConfigError(
            f"cut={cut!r}: input {past[0]!r} goes past it; cut where one tensor is all "
            "that the rest reads"
        )
    front = Graph(graph.inputs, (place,), (FEATURES,), {}, graph.binders)
    ends = (part(model.module, {INFER: graph}) for graph in (front, back))
    return Halves(*map(Model, ends))


def _place(module: Module, cut: str) -> Value:
    graph = module.functions[INFER]
    inner = [
        node
        for node in graph.nodes()
        if not isinstance(node.op, Leaf) and len(node.types) == 1
    ]
    if not isinstance(cut, str):
        raise ConfigError(f"cut={cut!r}: want the name of a tensor, or 'last:K'")
    if cut.startswith("last:"):
        node = _before(module, cut)
        data = [v for v in node.inputs if v is not None and v.node in set(inner)]
        if len(data) == 1:
            return data[0]
        raise ConfigError(f"cut={cut!r}: {node!r} reads no one tensor; name one")
    found = [node for node in inner if node.label == cut]
    if not found:
        names = list(dict.fromkeys(node.label for node in inner if node.label))
        raise ConfigError(
            f"cut={cut!r}: the model has no such tensor behind its fusions; it has "
            f"{', '.join(names[-8:])}"
        )
    return Value(found[-1])


def _before(module: Module, cut: str) -> Node:
    """The layer that what is cut off begins with."""
    text = cut.partition(":")[2]
    weighted = [
        node
        for node, own in layers(module)
        if any(module.variables[key].logical.rank > 1 for key in own)
    ]
    if not text.isdecimal() or not 1 <= int(text) <= len(weighted):
        raise ConfigError(
            f"cut={cut!r}: want 'last:K' with K from 1 to {len(weighted)}"
        )
    return weighted[-int(text)]
