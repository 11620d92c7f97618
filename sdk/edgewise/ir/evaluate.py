"""Graphs run by the references of their ops: slow, and what all else is checked by."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from edgewise.errors import DTypeError, InternalError, KernelError
from edgewise.ir.graph import Constant, Graph, Input, Node, Value, Variable
from edgewise.ir.op import Array
from edgewise.ir.sizes import solve
from edgewise.types import DType, TensorType

Arrays: TypeAlias = "tuple[Array, ...]"
Observer: TypeAlias = Callable[[Node, Arrays], None]
Named: TypeAlias = Mapping[str, Array]


def evaluate(
    graph: Graph,
    feeds: Named,
    variables: Named,
    observer: Observer | None = None,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Outputs by name, and new values of variables by key.

    ``observer`` sees every node with its outputs, leaves too, in order; symbols in the
    types of those nodes have become sizes.

    Raises:
        ShapeError: A feed is missing or does not fit.
        DTypeError: A feed or variable has other elements than the graph says.
    """
    bound = bind(graph, feeds)
    wanted = set(bound.roots)
    known: dict[Value, Array] = {}
    for node, arrays in run(bound, feeds, variables):
        known.update(_named(node, arrays, wanted))
        if observer is not None:
            observer(node, arrays)
    outputs = zip(bound.output_names, bound.outputs, strict=True)
    updates = {key: known[value] for key, value in bound.updates.items()}
    return {name: known[value] for name, value in outputs}, updates


def bind(graph: Graph, feeds: Named) -> Graph:
    """The graph at the sizes of ``feeds``."""
    shapes = {key: np.shape(array) for key, array in feeds.items()}
    return graph.bind(solve(graph, shapes))


def run(graph: Graph, feeds: Named, variables: Named) -> Iterator[tuple[Node, Arrays]]:
    """Every node of a graph without symbols, in order, with its outputs.

    An array is dropped once its last reader has run, unless the caller keeps it.
    """
    known: dict[Value, Array] = {}
    readers = graph.readers()
    for node in graph.nodes():
        inputs = tuple(None if value is None else known[value] for value in node.inputs)
        arrays = compute(node, inputs, feeds, variables)
        for value in node.inputs:
            if value is not None:
                readers[value] -= 1
                if not readers[value]:
                    del known[value]
        known.update(_named(node, arrays, readers))
        yield node, arrays


def _named(
    node: Node, arrays: Arrays, wanted: Container[Value]
) -> Iterator[tuple[Value, Array]]:
    for index, array in enumerate(arrays):
        value = Value(node, index)
        if value in wanted:
            yield value, array


def compute(
    node: Node, inputs: tuple[Array | None, ...], feeds: Named, variables: Named
) -> Arrays:
    """The outputs of one node."""
    if isinstance(node.op, Input):
        return (_leaf(node, "input", node.op.key, feeds),)
    if isinstance(node.op, Variable):
        return (_leaf(node, "variable", node.op.key, variables),)
    if isinstance(node.op, Constant):
        return (node.op.array,)
    try:
        result = node.op.reference(*inputs)
    except KernelError as error:
        raise KernelError(error.op, node.label, error.status) from error
    arrays = result if isinstance(result, tuple) else (result,)
    given = tuple(TensorType(DType.of(array.dtype), array.shape) for array in arrays)
    if any(
        a.dtype is not b.dtype or a.shape != b.shape
        for a, b in zip(given, node.types, strict=True)
    ):
        raise InternalError(f"{node}: its reference gave {given}; want {node.types}")
    return arrays


def _leaf(node: Node, kind: str, key: str, arrays: Named) -> Array:
    if key not in arrays:
        raise InternalError(f"{kind} {key!r} has no array")
    array, type_ = np.asarray(arrays[key]), node.types[0]
    if DType.of(array.dtype) is not type_.dtype:
        raise DTypeError(f"{kind} {key!r}: got {array.dtype}; want {type_}")
    if array.shape != type_.dims:
        raise InternalError(f"{kind} {key!r}: got {array.shape}; want {type_}")
    return array
