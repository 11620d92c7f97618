"""What models read in place of a weight while it is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from edgewise.ir.graph import Inputs, Node, Value, Variable, with_inputs
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise_trainer.values import with_array


class StandIn(Protocol):
    """Variables that are trained in place of one weight."""

    @property
    def weight(self) -> str:
        """Its name."""

    @property
    def infos(self) -> tuple[VariableInfo, ...]:
        """The variables."""

    def beside(self, weight: Value) -> Value:
        """What is read in place of the weight."""

    def merged(self, weight: Array, factors: Mapping[str, Array]) -> Array:
        """The same in numbers, of the stored weight."""

    def begun(self, weight: Array) -> dict[str, Array]:
        """Values of the variables where the stored weight is given anew."""


def reading(module: Module, ways: Mapping[str, Callable[[Value], Value]]) -> Module:
    """The module that reads, of some variables, what is made of them."""
    made: dict[str, Value] = {}  # once, however often and wherever it is read

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        if not isinstance(node.op, Variable) or node.op.key not in ways:
            return with_inputs(node, inputs)
        key = node.op.key
        if key not in made:
            made[key] = ways[key](Value(node))
        return (made[key],)

    functions = {name: graph.rebuild(visit) for name, graph in module.functions.items()}
    return Module(functions, module.variables, module.metadata)


def standing_in(module: Module, chosen: Iterable[StandIn]) -> Module:
    """The module with variables at work wherever one of the weights is read."""
    named = {own.weight: own for own in chosen}
    whole = reading(module, {key: own.beside for key, own in named.items()})
    infos = {info.key: info for own in named.values() for info in own.infos}
    return Module(whole.functions, whole.variables | infos, whole.metadata)


def merged(
    module: Module, chosen: Iterable[StandIn], live: Mapping[str, Array]
) -> Module:
    """The module with the weights that variables of the values ``live`` make."""
    variables = dict(module.variables)
    for own in chosen:
        info = variables[own.weight]
        weight = live.get(own.weight, info.initial)
        assert weight is not None  # noqa: S101 - a parameter
        variables[own.weight] = with_array(info, own.merged(weight, live))
    return Module(module.functions, variables, module.metadata)
