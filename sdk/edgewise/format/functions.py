"""A function table to a graph: ids resolved in order, types inferred node by node."""

from __future__ import annotations

from typing import TypeAlias

from edgewise.errors import InternalError
from edgewise.format._generated import schema
from edgewise.format.tables import DamageError
from edgewise.format.tensors import Tensors
from edgewise.format.values import want_unique
from edgewise.ir.binders import verify_binders
from edgewise.ir.graph import Graph, Node, Value, input_value
from edgewise.ir.op import Op
from edgewise.types import ValueType

Types: TypeAlias = tuple[ValueType | None, ...]


class Functions:
    """Makes graphs over the tensors and the ops of one file."""

    def __init__(self, tensors: Tensors, ops: tuple[Op, ...]) -> None:
        self._tensors, self._ops = tensors, ops
        self._inferred: dict[tuple[int, Types], tuple[ValueType, ...]] = {}

    def restore(self, table: schema.Function) -> Graph:
        """The graph that a table describes."""
        try:
            return self._graph(table)
        except DamageError as damage:
            raise DamageError(f"function {table.name!r}: {damage}") from None

    def _graph(self, table: schema.Function) -> Graph:
        want_unique("input", (port.name for port in table.inputs))
        want_unique("output", (result.name for result in table.outputs))
        inputs = tuple(
            input_value(port.name, self._tensors.types[port.type])
            for port in table.inputs
        )
        values = [*inputs, *map(self._tensors.leaf, table.tensors)]
        for number, node in enumerate(table.nodes):
            try:
                values += self._apply(node, values)
            except DamageError as damage:
                where = f"node {number} ({node.label!r})"
                raise DamageError(f"{where}: {damage}") from None
        outputs = tuple(_value(result.value, values) for result in table.outputs)
        names = tuple(result.name for result in table.outputs)
        binders = tuple(_value(index, values) for index in table.binders)
        graph = Graph(inputs, outputs, names, self._updates(table, values), binders)
        if binders:
            _want_bound(graph)
        return graph

    def _apply(self, table: schema.Node, values: list[Value]) -> list[Value]:
        if table.op >= len(self._ops):
            raise DamageError(f"there is no op {table.op}")
        op = self._ops[table.op]
        inputs = tuple(
            None if index == -1 else _value(index, values) for index in table.inputs
        )
        # Blocks of a network repeat: this halves the reading time of a transformer.
        key = table.op, tuple(None if v is None else v.kind for v in inputs)
        types = self._inferred.get(key)
        if types is None:
            types = self._inferred[key] = self._infer(op, key[1])
        if len(types) != table.outputs:
            raise DamageError(
                f"{op.name} has {len(types)} outputs, not {table.outputs}"
            )
        node = Node(op, inputs, types, table.label)
        return [Value(node, index) for index in range(len(types))]

    def _infer(self, op: Op, inputs: Types) -> tuple[ValueType, ...]:
        try:
            types = op.infer_all(inputs)
        except Exception as error:  # ops trust what they are given
            raise DamageError(f"{op.name} does not fit its inputs: {error}") from error
        # An absent input that an op hands on would come out as no type at all.
        if any(type_ is None for type_ in types):
            raise DamageError(f"{op.name} does not fit its inputs: one is missing")
        for type_ in types:
            self._tensors.types.sizes.want_sane(type_)
        return types

    def _updates(self, table: schema.Function, values: list[Value]) -> dict[str, Value]:
        updates: dict[str, Value] = {}
        for update in table.updates:
            variable = self._tensors.variable(update.tensor)
            value = _value(update.value, values)
            if variable.key in updates:
                raise DamageError(f"{variable.key!r} is assigned twice")
            if value.kind != variable.type:
                raise DamageError(
                    f"{variable.key!r} is {variable.type}, assigned {value.kind}"
                )
            updates[variable.key] = value
        return updates


def _want_bound(graph: Graph) -> None:
    """Raise ``DamageError`` unless every symbol has a size before it is needed."""
    try:
        verify_binders(graph)
    except InternalError as error:
        raise DamageError(str(error)) from None


def _value(index: int, values: list[Value]) -> Value:
    if not 0 <= index < len(values):
        raise DamageError(f"value {index} is not known yet: there are {len(values)}")
    return values[index]
