"""Stored tensors of a model: variables where they hold fractions, else constants."""

from __future__ import annotations

import logging

import numpy as np
import onnx

from edgewise.convert.order import subgraphs
from edgewise.convert.source import Parsed
from edgewise.convert.tensors import sparse_array, tensor_array
from edgewise.ir.graph import Graph, Value, Variable, constant, variable_value
from edgewise.ir.module import Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.types import DType, TensorType

logger = logging.getLogger(__name__)


class Weights:
    """Values of the initializers of all graphs of a model; each is read once."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self._variables: dict[str, VariableInfo] = {}
        # The message is kept as well: its identity is good for as long as it lives.
        self._values: dict[int, tuple[object, Value]] = {}
        self._statistics = _statistics(parsed.model.graph)

    def of(self, graph: onnx.GraphProto) -> dict[str, Value]:
        """What the initializers of ``graph`` stand for, by name."""
        found: dict[str, Value] = {}
        for tensor in graph.initializer:
            self._keep(found, tensor.name, tensor)
        for sparse in graph.sparse_initializer:
            self._keep(found, sparse.values.name, sparse)
        return found

    def _keep(
        self,
        found: dict[str, Value],
        name: str,
        tensor: onnx.TensorProto | onnx.SparseTensorProto,
    ) -> None:
        if not name or name in found:
            raise self._parsed.error(f"initializer name {name!r} is empty or double")
        # The body of a loop may be imported several times over.
        if id(tensor) not in self._values:
            self._values[id(tensor)] = tensor, self._value(name, tensor)
        found[name] = self._values[id(tensor)][1]

    def _value(
        self, name: str, tensor: onnx.TensorProto | onnx.SparseTensorProto
    ) -> Value:
        where = f"initializer {name!r}"
        if isinstance(tensor, onnx.TensorProto):
            array = tensor_array(self._parsed, tensor, where)
        else:
            array = sparse_array(self._parsed, tensor, where)
        type_ = TensorType(DType.of(array.dtype), np.shape(array))
        if not type_.dtype.is_float:
            return constant(array, name)
        role = Role.STATISTIC if name in self._statistics else Role.PARAMETER
        key, count = name, 1
        while key in self._variables:  # nested graphs have names of their own
            key, count = f"{name}_{count}", count + 1
        self._variables[key] = VariableInfo(key, type_, role, array)
        return variable_value(key, type_)

    def initial(self, value: Value) -> Array | None:
        """The stored array that ``value`` reads; ``None`` where it reads none."""
        if not isinstance(value.op, Variable):
            return None
        return self._variables[value.op.key].initial

    def used(self, graphs: list[Graph]) -> dict[str, VariableInfo]:
        """The variables that some graph reads."""
        read = {
            node.op.key
            for graph in graphs
            for node in graph.nodes()
            if isinstance(node.op, Variable)
        }
        unused = self._variables.keys() - read
        if unused:
            logger.debug("initializers that nothing reads: %s", sorted(unused))
        return {key: info for key, info in self._variables.items() if key in read}


def _statistics(graph: onnx.GraphProto) -> frozenset[str]:
    """Names of running means and variances, seen through ``Identity``."""
    alias: dict[str, str] = {}
    found: set[str] = set()
    for node in graph.node:
        if node.op_type == "Identity" and node.input and node.output:
            alias[node.output[0]] = alias.get(node.input[0], node.input[0])
        if node.op_type == "BatchNormalization":
            found.update(alias.get(name, name) for name in node.input[3:5])
        for inner in subgraphs(node):
            found |= _statistics(inner)
    return frozenset(found)
