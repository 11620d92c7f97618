"""What variables alone decide leaves the function: packed weights, derived tensors.

A pack op over a parameter moves into the parameter, whose stored bytes become the
packed ones.  Other computations over variables move into the function ``prepare``,
which fills variables of role ``DERIVED`` at load and after every update.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from edgewise.errors import InternalError
from edgewise.ir.graph import (
    Constant,
    Graph,
    Inputs,
    Leaf,
    Node,
    Value,
    Variable,
    constant,
    variable_value,
    with_inputs,
)
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Op
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.passes.fold import evaluate_node
from edgewise.types import TensorType, ValueType

PACKS = (PackPanels, PackTaps)
# A computation that makes more than this of its inputs is cheaper to repeat.
GROWTH = 2
SMALL = 4096  # elements, of which growth does not matter


def lower(module: Module) -> tuple[Module, Counter[str]]:
    """The module with packed parameters and a function ``prepare``."""
    done: Counter[str] = Counter()
    functions = {
        name: _pack_constants(graph, done) for name, graph in module.functions.items()
    }
    functions, variables = _pack_variables(functions, module.variables, done)
    derived: dict[str, Value] = {}
    for name, graph in functions.items():
        functions[name], found = _derive(graph, {*variables, *derived})
        derived |= found
    if derived:
        done["derived"] = len(derived)
        functions["prepare"] = Graph((), (), (), derived)
        variables |= {
            key: VariableInfo(key, value.type, Role.DERIVED)
            for key, value in derived.items()
        }
    return Module(functions, variables, module.metadata), done


def _pack_constants(graph: Graph, done: Counter[str]) -> Graph:
    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        source = inputs[0] if inputs else None
        if source is None or not isinstance(node.op, PACKS):
            return with_inputs(node, inputs)
        if not isinstance(source.op, Constant):
            return with_inputs(node, inputs)
        done["packed constants"] += 1
        (array,) = evaluate_node(node, inputs)
        return (constant(array, node.label),)

    return graph.rebuild(visit)


def _pack_variables(
    functions: dict[str, Graph],
    variables: dict[str, VariableInfo],
    done: Counter[str],
) -> tuple[dict[str, Graph], dict[str, VariableInfo]]:
    packings = _packings(functions.values())
    changed = dict(variables)
    for key, op in packings.items():
        info = changed[key]
        if info.initial is None or info.packing is not None:
            raise InternalError(f"variable {key!r} is packed twice, or holds nothing")
        (type_,) = op.infer_all((info.type,))
        if not isinstance(type_, TensorType):
            raise InternalError(f"{op.name} packs {key!r} into {type_}")
        array = op.reference(info.initial)
        if isinstance(array, tuple):
            raise InternalError(f"{op.name} gives several arrays")
        changed[key] = VariableInfo(key, type_, info.role, array, info.logical, op)
    done["packed"] += len(packings)

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        source = inputs[0] if inputs else None
        if isinstance(node.op, PACKS) and source is not None:
            op = source.op
            if isinstance(op, Variable) and op.key in packings:
                return (variable_value(op.key, changed[op.key].type),)
        return with_inputs(node, inputs)

    rebuilt = {name: graph.rebuild(visit) for name, graph in functions.items()}
    return rebuilt, changed


def _packings(graphs: Iterable[Graph]) -> dict[str, Op]:
    """The pack op of each variable that nothing in any graph reads but that one op.

    Where readers differ (tied weights), the variable stays as it is and the packed
    forms are derived: the file holds it once.
    """
    found: dict[str, set[Op | None]] = {}
    for graph in graphs:
        for value, op in _reads(graph):
            if isinstance(value.op, Variable):
                packing = op if isinstance(op, PACKS) else None
                found.setdefault(value.op.key, set()).add(packing)
    packings: dict[str, Op] = {}
    for key, ops in found.items():
        first = ops.pop()
        if first is not None and not ops:
            packings[key] = first
    return packings


def _reads(graph: Graph) -> Iterator[tuple[Value, Op | None]]:
    """Every value that is read, and the op that reads it; none for the outside."""
    for node in graph.nodes():
        for value in node.inputs:
            if value is not None:
                yield value, node.op
    for value in graph.roots:
        yield value, None


def _derive(graph: Graph, taken: set[str]) -> tuple[Graph, dict[str, Value]]:
    """The graph reading derived variables, and how each of them is computed."""
    sources = _sources(graph)
    wanted = _frontier(graph, sources)
    derived: dict[str, Value] = {}
    replaced: dict[Value, Value] = {}
    for value in wanted:
        key = _name(value, sources[value.node], taken)
        taken.add(key)
        derived[key] = value
        replaced[value] = variable_value(key, value.type)

    def visit(node: Node, inputs: Inputs) -> tuple[Value, ...]:
        results = with_inputs(node, inputs)
        return tuple(
            replaced.get(Value(node, index), result)
            for index, result in enumerate(results)
        )

    return graph.rebuild(visit), derived


def _sources(graph: Graph) -> dict[Node, str]:
    """Nodes that only variables and constants decide: the first variable of each.

    An empty text stands for constants alone.
    """
    sources: dict[Node, str] = {}
    for node in graph.nodes():
        if isinstance(node.op, Variable):
            sources[node] = node.op.key
        elif isinstance(node.op, Constant):
            sources[node] = ""
        elif not isinstance(node.op, Leaf) and _movable(node):
            inner = [value.node for value in node.inputs if value is not None]
            if inner and all(node in sources for node in inner):
                keys = [sources[node] for node in inner if sources[node]]
                sources[node] = keys[0] if keys else ""
    return sources


def _movable(node: Node) -> bool:
    op = node.op
    if op.random or op.dynamic or op.binds or op.objects:
        return False
    if isinstance(op, PACKS):
        return all(type_.is_static for type_ in node.types)
    given = _elements([value.kind for value in node.inputs if value is not None])
    made = _elements(node.types)
    if given is None or made is None:
        return False
    return made <= GROWTH * given + SMALL


def _elements(types: Sequence[ValueType]) -> int | None:
    """Elements of all; ``None`` where only a run knows, or no memory holds them."""
    known = [
        math.prod(type_.dims)
        for type_ in types
        if isinstance(type_, TensorType) and type_.is_static and not type_.is_object
    ]
    return sum(known) if len(known) == len(types) else None


def _frontier(graph: Graph, sources: dict[Node, str]) -> list[Value]:
    """Values to derive: decided by variables, read by what is not."""
    wanted: dict[Value, None] = {}
    readers = [node for node in graph.nodes() if node not in sources]
    read = [value for node in readers for value in node.inputs if value is not None]
    for value in (*read, *graph.roots):
        while value.op.view and value.node.inputs[0] is not None:
            value = value.node.inputs[0]  # noqa: PLW2901 - a view costs nothing to repeat
        if not isinstance(value.op, Leaf) and sources.get(value.node):
            wanted[value] = None
    return list(wanted)


def _name(value: Value, source: str, taken: set[str]) -> str:
    name = f"{source}/{value.op.name}"
    if len(value.node.types) > 1:
        name += f".{value.index}"
    unique, count = name, 1
    while unique in taken:
        unique, count = f"{name}_{count}", count + 1
    return unique
