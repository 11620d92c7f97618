"""A model at other sizes of its inputs than it declares.

Exporters write the sizes of one example into a file.  Most layers do not mind others,
so that a model can be trained at smaller images, and in batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from edgewise.dims import Dim, symbol
from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.graph import Graph, Inputs, Node, Value, constant, constant_array
from edgewise.ir.leaf import Input, Leaf
from edgewise.ops import Gather
from edgewise.types import TensorType, ValueType
from edgewise_trainer.carried import Kinds, Numbers, carried

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
BATCH = "batch"  # the symbol of a first axis that was a number


def resized(graph: Graph, shapes: Shapes) -> Graph:
    """The graph for inputs of ``shapes``; itself where it takes them as it is.

    A first axis that differs becomes a symbol, so that batches of all sizes fit; of
    other axes the new sizes are fixed.

    Raises:
        ShapeError: The model does not work at these sizes.
    """
    kinds = [_kind(value, shapes) for value in graph.inputs]
    if takes(graph, shapes):
        return graph
    given = [
        value if value.kind is kind else _input(value, kind)
        for value, kind in zip(graph.inputs, kinds, strict=True)
    ]
    try:
        return placed(graph, given)
    except (ShapeError, DTypeError) as error:
        sizes = ", ".join(f"{key!r} {list(shape)}" for key, shape in shapes.items())
        raise ShapeError(
            f"the model does not work with inputs {sizes}: {error}"
        ) from error


def takes(graph: Graph, shapes: Shapes) -> bool:
    """Whether no size that the graph declares is another in ``shapes``."""
    return all(_kind(value, shapes) is value.kind for value in graph.inputs)


def _kind(value: Value, shapes: Shapes) -> ValueType:
    """The type of an input for what came; a wrong rank is left to the run."""
    kind, shape = value.kind, shapes.get(value.node.label, ())
    if not isinstance(kind, TensorType) or len(shape) != kind.rank:
        return kind
    pairs = enumerate(zip(kind.shape, shape, strict=True))
    dims = tuple(_dim(axis, dim, size) for axis, (dim, size) in pairs)
    return kind if dims == kind.shape else kind.with_shape(dims)


def _dim(axis: int, declared: Dim, size: int) -> Dim:
    if not isinstance(declared, int) or declared == size:
        return declared
    return size if axis else symbol(BATCH)


def placed(graph: Graph, given: Sequence[Value]) -> Graph:
    """The graph over other values than its inputs, of the same ranks.

    Raises:
        ShapeError: It does not work at their sizes.
    """
    new = dict(zip(graph.inputs, given, strict=True))
    numbers = _numbers(graph, given)
    for node in graph.nodes():
        if isinstance(node.op, Input):
            continue
        inputs = tuple(None if value is None else new[value] for value in node.inputs)
        fresh = _node(node, inputs, numbers)
        new |= {Value(node, i): Value(fresh, i) for i in range(len(node.types))}
    return Graph(
        tuple(given),
        tuple(new[value] for value in graph.outputs),
        graph.output_names,
        {key: new[value] for key, value in graph.updates.items()},
        tuple(new[value] for value in graph.binders),
    )


def _numbers(graph: Graph, given: Sequence[Value]) -> dict[str, int]:
    """Symbols of first axes that were numbers."""
    found = {}
    for old, new in zip(graph.inputs, given, strict=True):
        pair = (old.kind, new.kind)
        if not all(isinstance(kind, TensorType) and kind.rank for kind in pair):
            continue
        before, after = old.type.shape[0], new.type.shape[0]
        if isinstance(before, int) and not isinstance(after, int):
            found[str(after)] = before
    return found


def _input(value: Value, kind: ValueType) -> Value:
    return Value(Node(value.op, (), (kind,), value.node.label))


def _node(node: Node, inputs: Inputs, numbers: Numbers) -> Node:
    if isinstance(node.op, Leaf) or inputs == node.inputs:
        return node
    before: Kinds = tuple(None if v is None else v.kind for v in node.inputs)
    after: Kinds = tuple(None if v is None else v.kind for v in inputs)
    axis = node.op.axis if isinstance(node.op, Gather) else None
    places = None if axis is None else _places(node, inputs, axis)
    if places is not None:
        return node.op(inputs[0], places, label=node.label).node
    op = carried(node.op, before, after, numbers)
    return Node(op, inputs, op.infer_all(after), node.label)


def _places(node: Node, inputs: Inputs, axis: int) -> Value | None:
    """Places of a gather that repeats each element, as enlarging an image does."""
    (old, places), new = node.inputs, inputs[0]
    found = constant_array(places)
    if old is None or new is None or found is None or found.ndim != 1:
        return None
    before, after = old.type.shape[axis], new.type.shape[axis]
    if not isinstance(before, int) or not isinstance(after, int) or not before:
        return None
    times = len(found) // before
    if not np.array_equal(found, np.arange(before).repeat(times)):
        return None
    return constant(np.arange(after).repeat(times))
