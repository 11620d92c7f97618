"""Values, nodes and graphs: an immutable DAG in single-assignment form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from edgewise.dims import Dim
from edgewise.errors import DTypeError, InternalError
from edgewise.ir.leaf import Constant, Input, Leaf, Variable
from edgewise.ir.op import Array, Op
from edgewise.types import DType, TensorType, ValueType

__all__ = [
    "Constant",
    "Graph",
    "Input",
    "Inputs",
    "Leaf",
    "Node",
    "Value",
    "Variable",
    "Visit",
    "constant",
    "constant_array",
    "input_value",
    "variable_value",
    "with_inputs",
]


class Node:
    """One application of an op; compared by identity.

    Attributes:
        op: What it computes.
        inputs: Values it reads; ``None`` stands for an absent optional input.
        types: Types of its outputs.
        label: Name in the source model, for messages and profiles.
    """

    __slots__ = ("inputs", "label", "op", "types")

    def __init__(
        self,
        op: Op,
        inputs: tuple[Value | None, ...],
        types: tuple[ValueType, ...],
        label: str = "",
    ) -> None:
        self.op, self.inputs, self.types, self.label = op, inputs, types, label

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.label or hex(id(self))}>"


class Value:
    """Output ``index`` of ``node``; compared by value."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int = 0) -> None:
        self.node, self.index = node, index

    @property
    def kind(self) -> ValueType:
        """What it is: a tensor, a sequence or an optional."""
        return self.node.types[self.index]

    @property
    def type(self) -> TensorType:
        """Element type and shape of a tensor.

        Raises:
            DTypeError: The value is no tensor.
        """
        found = self.node.types[self.index]
        if not isinstance(found, TensorType):
            raise DTypeError(f"{self.node!r}: got {found}; want a tensor")
        return found

    @property
    def op(self) -> Op:
        """The op that makes it."""
        return self.node.op

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Value)
            and self.node is other.node
            and self.index == other.index
        )

    def __hash__(self) -> int:
        return hash((id(self.node), self.index))

    def __repr__(self) -> str:
        return f"{self.node!r}.{self.index}:{self.kind}"


def input_value(key: str, type_: ValueType) -> Value:
    """A fresh graph input."""
    return Value(Node(Input(key), (), (type_,), key))


def variable_value(key: str, type_: TensorType) -> Value:
    """A reading of the module's variable ``key``."""
    return Value(Node(Variable(key), (), (type_,), key))


def constant(array: Array, label: str = "") -> Value:
    """A constant value."""
    array = np.asarray(array)
    type_ = TensorType(DType.of(array.dtype), array.shape)
    return Value(Node(Constant(array), (), (type_,), label))


def constant_array(value: Value | None) -> Array | None:
    """The array of a constant value; ``None`` for any other."""
    if value is None or not isinstance(value.op, Constant):
        return None
    return value.op.array


Inputs: TypeAlias = tuple["Value | None", ...]
Visit: TypeAlias = Callable[[Node, Inputs], "tuple[Value, ...]"]


class Graph:
    """A function: inputs to outputs, and the variables it assigns.

    Attributes:
        inputs: Values of ``Input`` nodes, in the caller's order.
        outputs: Values given back, in order.
        output_names: Their names.
        updates: New values of variables, by name, stored when a run ends well.
        binders: Values that give symbols their sizes when they are computed: of
            ``ReadDims`` and of ops that are ``dynamic``.  Each may depend on symbols
            of inputs and of earlier binders only.
    """

    __slots__ = ("_order", "binders", "inputs", "output_names", "outputs", "updates")

    def __init__(
        self,
        inputs: tuple[Value, ...],
        outputs: tuple[Value, ...],
        output_names: tuple[str, ...],
        updates: Mapping[str, Value] | None = None,
        binders: tuple[Value, ...] = (),
    ) -> None:
        self.inputs, self.outputs, self.binders = inputs, outputs, binders
        self.output_names = output_names
        self.updates = dict(updates or {})
        self._order: tuple[Node, ...] | None = None
        if len(outputs) != len(output_names):
            raise InternalError("every output needs one name")

    @property
    def roots(self) -> tuple[Value, ...]:
        """All values the graph exists for: binders, outputs, updates."""
        return (*self.binders, *self.outputs, *self.updates.values())

    def nodes(self) -> list[Node]:
        """Every node that a root needs, each after its inputs; leaves too.

        The order is that of a depth-first walk from the roots: deterministic, and close
        to the order of the source.  Binders come first, so every symbol has its size
        before a node that needs it.
        """
        if self._order is None:  # asked for several times on the way to a session
            self._order = tuple(self._walk())
        return list(self._order)

    def _walk(self) -> list[Node]:
        order: list[Node] = []
        done: set[int] = set()
        # What variables are assigned from comes before the first of the assignments:
        # so whatever reads a variable's old value has run when it gets its new one.
        assigned = [value.node for value in self.updates.values()]
        sources = [v for node in assigned for v in node.inputs if v is not None]
        ordinary = (*self.inputs, *self.binders, *self.outputs)
        starts = (*ordinary, *sources, *self.updates.values())
        stack = [(start.node, False) for start in reversed(starts)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in done:
                continue
            if expanded:
                done.add(id(node))
                order.append(node)
                continue
            stack.append((node, True))
            stack.extend(
                (value.node, False)
                for value in reversed(node.inputs)
                if value is not None and id(value.node) not in done
            )
        return order

    def readers(self) -> dict[Value, int]:
        """How many times each value is read, outputs and updates counted."""
        count: dict[Value, int] = {}
        for node in self.nodes():
            for value in node.inputs:
                if value is not None:
                    count[value] = count.get(value, 0) + 1
        for value in self.roots:
            count[value] = count.get(value, 0) + 1
        return count

    def rebuild(self, visit: Visit) -> Graph:
        """The graph with every node replaced by what ``visit(node, new_inputs)`` gives.

        Inputs stay.  ``visit`` returns as many values as the node has outputs.  A node
        whose visit returns its own values keeps its identity.
        """
        new: dict[Value, Value] = {}
        for node in self.nodes():
            inputs = tuple(None if v is None else new[v] for v in node.inputs)
            if isinstance(node.op, Input):
                results: tuple[Value, ...] = (Value(node),)
            else:
                results = visit(node, inputs)
            if len(results) != len(node.types):
                raise InternalError(f"a visit of {node} gave {len(results)} values")
            for index, result in enumerate(results):
                new[Value(node, index)] = result
        return Graph(
            self.inputs,
            tuple(new[value] for value in self.outputs),
            self.output_names,
            {key: new[value] for key, value in self.updates.items()},
            tuple(new[value] for value in self.binders),
        )

    def bind(self, values: Mapping[str, Dim]) -> Graph:
        """The graph with symbols replaced by sizes and all types inferred anew.

        A binder stays, though nothing may need it any more.
        """
        inputs = {
            value: Value(
                Node(value.op, (), (value.kind.bind(values),), value.node.label)
            )
            for value in self.inputs
        }
        new: dict[Value, Value] = dict(inputs)
        for node in self.nodes():
            if isinstance(node.op, Input):
                continue
            fresh = _bind_node(node, new, values)
            for index in range(len(node.types)):
                new[Value(node, index)] = Value(fresh, index)
        return Graph(
            tuple(inputs.values()),
            tuple(new[value] for value in self.outputs),
            self.output_names,
            {key: new[value] for key, value in self.updates.items()},
            tuple(new[value] for value in self.binders),
        )


def _bind_node(
    node: Node, new: Mapping[Value, Value], values: Mapping[str, Dim]
) -> Node:
    if isinstance(node.op, Leaf):
        return node
    op = node.op.bind(values)
    inputs = tuple(None if v is None else new[v] for v in node.inputs)
    types = op.infer_all(tuple(None if v is None else v.kind for v in inputs))
    return Node(op, inputs, types, node.label)


def with_inputs(node: Node, inputs: Inputs) -> tuple[Value, ...]:
    """The node's outputs when it reads ``inputs``: itself where nothing changed."""
    if inputs == node.inputs:
        return tuple(Value(node, index) for index in range(len(node.types)))
    fresh = Node(node.op, inputs, node.types, node.label)
    return tuple(Value(fresh, index) for index in range(len(node.types)))
