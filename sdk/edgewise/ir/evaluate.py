"""Graphs run by the references of their ops: slow, and what all else is checked by."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from edgewise.errors import DTypeError, InternalError, KernelError
from edgewise.ir.binders import MAX_SIZE, learn
from edgewise.ir.fit import described, fits
from edgewise.ir.graph import Constant, Graph, Input, Leaf, Node, Value, Variable
from edgewise.ir.op import Call
from edgewise.ir.reference import NO_BODIES, outputs
from edgewise.ir.sizes import solve
from edgewise.types import TensorType

# Arrays; lists for sequences, None for an absent optional.
Values: TypeAlias = "tuple[Any, ...]"
Observer: TypeAlias = Callable[[Node, Values], None]
Named: TypeAlias = Mapping[str, Any]


def evaluate(
    graph: Graph,
    feeds: Named,
    variables: Named,
    observer: Observer | None = None,
    functions: Mapping[str, Graph] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs by name, and new values of variables by key.

    Args:
        graph: What to run.
        feeds: Inputs by name.
        variables: Variables by key.
        observer: Sees every node with its outputs, leaves too, in order; symbols in the
            types of those nodes have become sizes.
        functions: The functions of the module, for ops that have bodies.

    Raises:
        ShapeError: A feed is missing or does not fit, or a size that the run finds.
        DTypeError: A feed or variable has other elements than the graph says.
    """
    wanted = set(graph.roots)
    known: dict[Value, Any] = {}
    for node, bound, values in run(graph, feeds, variables, functions):
        known.update(_named(node, values, wanted))
        if observer is not None:
            observer(bound, values)
    named = zip(graph.output_names, graph.outputs, strict=True)
    updates = {key: known[value] for key, value in graph.updates.items()}
    return {name: known[value] for name, value in named}, updates


def bind(
    graph: Graph,
    feeds: Named,
    variables: Named,
    functions: Mapping[str, Graph] | None = None,
) -> Graph:
    """The graph at the sizes of ``feeds``; it runs where only a run tells some."""
    sizes = solve(graph, _shapes(graph, feeds))
    binders = {value.node for value in graph.binders}
    if binders:
        for node, _, values in run(graph, feeds, variables, functions):
            if node in binders:
                sizes |= learn(node, values, sizes)
    return graph.bind(sizes)


def run(
    graph: Graph,
    feeds: Named,
    variables: Named,
    functions: Mapping[str, Graph] | None = None,
) -> Iterator[tuple[Node, Node, Values]]:
    """Every node in order: as the graph has it, with known sizes, and its outputs.

    A value is dropped once its last reader has run, unless the caller keeps it.
    """
    sizes = solve(graph, _shapes(graph, feeds))
    call = Bodies(functions or {}, variables)
    binders = {value.node for value in graph.binders}
    readers = graph.readers()
    known: dict[Value, Any] = {}
    fresh: dict[Node, Node] = {}
    for node in graph.nodes():
        bound = _bound(node, fresh, sizes)
        inputs = tuple(None if value is None else known[value] for value in node.inputs)
        values = compute(bound, inputs, feeds, variables, call)
        if node in binders:
            sizes = learn(bound, values, sizes)
            types = tuple(type_.bind(sizes) for type_ in bound.types)
            bound = Node(bound.op.bind(sizes), bound.inputs, types, node.label)
        fresh[node] = bound
        for value in node.inputs:
            if value is not None:
                readers[value] -= 1
                if not readers[value]:
                    del known[value]
        known.update(_named(node, values, readers))
        yield node, bound, values


def _bound(node: Node, fresh: Mapping[Node, Node], sizes: Mapping[str, int]) -> Node:
    """The node with the sizes that are known by now."""
    if isinstance(node.op, Leaf):
        return Node(node.op, (), (node.types[0].bind(sizes),), node.label)
    inputs = tuple(
        None if value is None else Value(fresh[value.node], value.index)
        for value in node.inputs
    )
    op = node.op.bind(sizes)
    types = op.infer_all(tuple(None if v is None else v.kind for v in inputs))
    return Node(op, inputs, types, node.label)


def _named(
    node: Node, values: Values, wanted: Container[Value]
) -> Iterator[tuple[Value, Any]]:
    for index, array in enumerate(values):
        value = Value(node, index)
        if value in wanted:
            yield value, array


class Bodies:
    """Runs functions by the references of their ops."""

    limit = MAX_SIZE

    def __init__(self, functions: Mapping[str, Graph], variables: Named) -> None:
        self._functions, self._variables = functions, variables

    def __call__(self, name: str, inputs: Values) -> Values:
        """Outputs of the function ``name``, in order."""
        if name not in self._functions:
            raise InternalError(f"there is no function {name!r} to run")
        graph = self._functions[name]
        keys = (value.op.key for value in graph.inputs if isinstance(value.op, Input))
        feeds = dict(zip(keys, inputs, strict=True))
        named, _ = evaluate(graph, feeds, self._variables, functions=self._functions)
        return tuple(named.values())


def compute(
    node: Node,
    inputs: Values,
    feeds: Named,
    variables: Named,
    call: Call = NO_BODIES,
) -> Values:
    """The outputs of one node."""
    if isinstance(node.op, Input):
        return (_leaf(node, "input", node.op.key, feeds),)
    if isinstance(node.op, Variable):
        return (_leaf(node, "variable", node.op.key, variables),)
    if isinstance(node.op, Constant):
        return (node.op.array,)
    try:
        return outputs(node.op, inputs, node.types, call)
    except KernelError as error:
        raise KernelError(error.op, error.node or node.label, error.status) from error


def _shapes(graph: Graph, feeds: Named) -> dict[str, tuple[int, ...]]:
    return {
        value.op.key: np.shape(feeds[value.op.key])
        for value in graph.inputs
        if isinstance(value.op, Input)
        and isinstance(value.kind, TensorType)
        and value.op.key in feeds
    }


def _leaf(node: Node, kind: str, key: str, given: Named) -> Any:
    if key not in given:
        raise InternalError(f"{kind} {key!r} has no array")
    found, type_ = given[key], node.types[0]
    if isinstance(type_, TensorType):
        found = np.asarray(found)
        if found.dtype == type_.dtype.numpy and found.shape != type_.dims:
            raise InternalError(f"{kind} {key!r}: got {found.shape}; want {type_}")
    if not fits(found, type_):
        raise DTypeError(f"{kind} {key!r}: got {described(found)}; want {type_}")
    return found
