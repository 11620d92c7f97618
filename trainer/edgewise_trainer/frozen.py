"""A model as a part of another's graph: its parameters are constants there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgewise.dims import Dim, Expr
from edgewise.errors import ConfigError
from edgewise.ir.evaluate import evaluate
from edgewise.ir.graph import (
    Graph,
    Inputs,
    Node,
    Value,
    Variable,
    constant,
    with_inputs,
)
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise_trainer.names import INFER, PREPARE
from edgewise_trainer.resized import placed


def frozen(module: Module, inputs: Sequence[Value]) -> Value:
    """The first output of a model that reads ``inputs``, by their names.

    Raises:
        ConfigError: It reads others, or branches, or has sizes that only a run knows.
        ShapeError: It does not work at their sizes.
    """
    graph = module.functions[INFER]
    if graph.binders or any(node.op.bodies() for node in graph.nodes()):
        raise ConfigError(
            "a teacher cannot have branches, loops or sizes that only a run knows"
        )
    named = {value.node.label: value for value in inputs}
    missing = [v.node.label for v in graph.inputs if v.node.label not in named]
    if missing:
        raise ConfigError(
            f"the teacher reads {missing[0]!r}; want inputs of the model:"
            f" {', '.join(named)}"
        )
    given = [named[value.node.label] for value in graph.inputs]
    held = _without_variables(graph, _values(module))
    return placed(held.bind(_sizes(held, given)), given).outputs[0]


def _sizes(graph: Graph, given: Sequence[Value]) -> dict[str, Dim]:
    """What symbols of the inputs are called in what is given."""
    found: dict[str, Dim] = {}
    for value, other in zip(graph.inputs, given, strict=True):
        for dim, size in zip(value.type.shape, other.type.shape, strict=False):
            if isinstance(dim, Expr):
                found.setdefault(str(dim), size)
    return found


def _values(module: Module) -> dict[str, Array]:
    infos = module.variables.values()
    values = {i.key: i.initial for i in infos if i.initial is not None}
    prepare = module.functions.get(PREPARE)
    return values if prepare is None else values | evaluate(prepare, {}, values)[1]


def _without_variables(graph: Graph, values: Mapping[str, Array]) -> Graph:
    made: dict[str, Value] = {}

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if not isinstance(node.op, Variable):
            return with_inputs(node, inputs)
        key = node.op.key
        return (made.setdefault(key, constant(values[key], node.label)),)

    return graph.rebuild(visit)
