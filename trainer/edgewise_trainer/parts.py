"""A part of a module that runs on its own: one function and what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgewise.ir.bodies import reachable
from edgewise.ir.graph import Graph, Variable
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise_trainer.names import PREPARE


def part(
    module: Module,
    name: str,
    graph: Graph,
    states: Iterable[VariableInfo] = (),
    values: Mapping[str, Array] | None = None,
) -> Module:
    """A module that holds a function, and of what is derived only that which it reads.

    Args:
        module: What the function belongs to; its other functions are left out, unless
            this one runs them.
        name: Name of the function.
        graph: The function.
        states: Variables of its own.
        values: What those hold; what they begin with where one is missing.
    """
    functions = dict(module.functions) | {name: graph}
    functions = {key: functions[key] for key in reachable(functions, [name])}
    read = set[str]().union(*map(_read, functions.values()))
    variables = {key: info for key, info in module.variables.items() if key in read}
    for info in states:
        array = (values or {}).get(info.key, info.initial)
        variables[info.key] = VariableInfo(info.key, info.type, info.role, array)
    prepare = module.functions.get(PREPARE)
    derived = prepare.updates if prepare is not None else {}
    kept = {key: value for key, value in derived.items() if key in read}
    if kept:
        functions[PREPARE] = Graph((), (), (), kept)
        behind = _read(functions[PREPARE])
        variables |= {key: module.variables[key] for key in behind}
    return Module(functions, variables, module.metadata)


def _read(graph: Graph) -> set[str]:
    return {node.op.key for node in graph.nodes() if isinstance(node.op, Variable)}
