"""A part of a module that runs on its own: functions and what they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgewise.ir.bodies import reachable
from edgewise.ir.graph import Graph, Variable
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise_trainer.names import PREPARE


def part(
    module: Module,
    functions: Mapping[str, Graph],
    states: Iterable[VariableInfo] = (),
    values: Mapping[str, Array] | None = None,
) -> Module:
    """A module of some functions, and of what is derived only that which they read.

    Args:
        module: What the functions belong to; its own are left out, unless these run
            them.
        functions: The functions, by name.
        states: Variables of their own.
        values: What those hold; what they begin with where one is missing.
    """
    found = dict(module.functions) | dict(functions)
    found = {key: found[key] for key in reachable(found, functions)}
    read = set[str]().union(*map(_read, found.values()))
    variables = {key: info for key, info in module.variables.items() if key in read}
    for info in states:
        array = (values or {}).get(info.key, info.initial)
        variables[info.key] = VariableInfo(info.key, info.type, info.role, array)
    prepare = module.functions.get(PREPARE)
    derived = prepare.updates if prepare is not None else {}
    kept = {key: value for key, value in derived.items() if key in read}
    if kept:
        found[PREPARE] = Graph((), (), (), kept)
        behind = _read(found[PREPARE])
        variables |= {key: module.variables[key] for key in behind}
    return Module(found, variables, module.metadata)


def _read(graph: Graph) -> set[str]:
    return {node.op.key for node in graph.nodes() if isinstance(node.op, Variable)}
