"""Variables as a session holds them: mapped, or of its own where a function assigns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.graph import Constant, Graph, Variable
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.runtime import memory


def open_variables(module: Module, functions: Iterable[str]) -> dict[str, Array]:
    """Arrays of all variables that the functions read or assign; they never move.

    What no function assigns is used where it lies, in the mapped file for instance.
    """
    graphs = [module.functions[name] for name in functions]
    assigned = {key for graph in graphs for key in graph.updates}
    read = {
        node.op.key
        for graph in graphs
        for node in graph.nodes()
        if isinstance(node.op, Variable)
    }
    arrays = {}
    for key in sorted(read | assigned):
        info = module.variables.get(key)
        if info is None:
            raise InternalError(
                f"a function reads variable {key!r}, which is not there"
            )
        arrays[key] = _owned(info) if key in assigned else _borrowed(info)
    return arrays


def derived(module: Module) -> frozenset[str]:
    """Names of the variables that ``prepare`` computes."""
    return frozenset(
        key for key, info in module.variables.items() if info.role is Role.DERIVED
    )


def _owned(info: VariableInfo) -> Array:
    array = memory.zeros(info.type)
    if info.initial is not None:
        array[...] = info.initial
    return array


def _borrowed(info: VariableInfo) -> Array:
    if info.initial is not None:
        return np.ascontiguousarray(info.initial).reshape(info.type.dims)
    if info.role is Role.DERIVED:
        raise InternalError(f"nothing computes the derived variable {info.key!r}")
    return memory.zeros(info.type)


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants of a graph."""
    return sum(
        node.op.array.nbytes for node in graph.nodes() if isinstance(node.op, Constant)
    )
