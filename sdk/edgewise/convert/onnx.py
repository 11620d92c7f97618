"""ONNX graph to module: names to values, node by node."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import onnx

from edgewise.convert.config import ConvertConfig
from edgewise.convert.context import OpContext
from edgewise.convert.inputs import graph_inputs
from edgewise.convert.onnx_ops import importer_of, supported
from edgewise.convert.onnx_ops.registry import Outputs
from edgewise.convert.order import sorted_nodes
from edgewise.convert.source import MAIN_DOMAINS, Parsed, Source, opset, read
from edgewise.convert.symbolic import Sizes
from edgewise.convert.tensors import tensor_array
from edgewise.errors import (
    DTypeError,
    InternalError,
    ShapeError,
    UnsupportedOpError,
)
from edgewise.ir.graph import Graph, Value, Variable, constant, variable_value
from edgewise.ir.module import Module, Role, VariableInfo
from edgewise.ir.op import Array
from edgewise.types import DType, TensorType

logger = logging.getLogger(__name__)


def import_module(source: Source, config: ConvertConfig | None = None) -> Module:
    """The model as a module of core ops, before any pass."""
    parsed = read(source)
    return _Importer(parsed, config or ConvertConfig()).module()


class _Importer:
    """One import: the values that names stand for so far."""

    def __init__(self, parsed: Parsed, config: ConvertConfig) -> None:
        self._parsed, self._config = parsed, config
        self._graph = parsed.model.graph
        self._opset = opset(parsed)
        self._values: dict[str, Value] = {}
        self._variables: dict[str, VariableInfo] = {}
        self._sizes = Sizes()

    def module(self) -> Module:
        """The whole model."""
        graph = self._graph
        if graph.sparse_initializer:
            raise self._parsed.error(
                "has sparse initializers, not supported; export dense ones"
            )
        self._initializers()
        inputs = graph_inputs(self._parsed, self._config, self._values)
        self._values.update(inputs)
        nodes = sorted_nodes(self._parsed, self._values)
        _refuse_unknown(nodes, self._opset)
        for node in nodes:
            self._import(node)
        outputs = tuple(self._output(item.name) for item in graph.output)
        if not outputs:
            raise self._parsed.error("has no outputs")
        names = tuple(item.name for item in graph.output)
        infer = Graph(tuple(inputs.values()), outputs, names)
        return Module({"infer": infer}, self._used(infer), self._metadata())

    def _initializers(self) -> None:
        statistics = _statistics(self._graph)
        for tensor in self._graph.initializer:
            name = tensor.name
            if not name or name in self._values:
                raise self._parsed.error(
                    f"initializer name {name!r} is empty or double"
                )
            array = tensor_array(self._parsed, tensor, f"initializer {name!r}")
            type_ = TensorType(DType.of(array.dtype), array.shape)
            if not type_.dtype.is_float:
                self._values[name] = constant(array, name)
                continue
            role = Role.STATISTIC if name in statistics else Role.PARAMETER
            self._variables[name] = VariableInfo(name, type_, role, array)
            self._values[name] = variable_value(name, type_)

    def _initial(self, value: Value) -> Array | None:
        if not isinstance(value.op, Variable):
            return None
        return self._variables[value.op.key].initial

    def _import(self, node: onnx.NodeProto) -> None:
        inputs = tuple(self._values[name] if name else None for name in node.input)
        context = OpContext(
            self._parsed, node, self._opset, inputs, self._sizes, self._initial
        )
        importer = importer_of(node.op_type, self._opset)
        if importer is None:
            raise InternalError(f"{node.op_type} lost its importer")
        try:
            outputs = importer(context)
        except (ShapeError, DTypeError) as error:
            where = f"node {context.name!r} ({context.title})"
            raise type(error)(f"{where}: {error}") from error
        if unread := context.unread():
            raise context.unsupported(
                f"has attributes that edgewise does not know: {', '.join(unread)}",
                "export with an older operator set",
            )
        self._bind(context, outputs)

    def _bind(self, context: OpContext, outputs: Outputs) -> None:
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        for index, name in enumerate(context.node.output):
            if not name:
                continue
            value = values[index] if index < len(values) else None
            if value is None:
                raise context.unsupported(
                    f"its output {index} ({name!r}) is not computed",
                    "drop that output before export",
                )
            self._values[name] = self._sizes.settle(value)

    def _output(self, name: str) -> Value:
        if name not in self._values:
            raise self._parsed.error(f"nothing makes the output {name!r}")
        return self._values[name]

    def _used(self, infer: Graph) -> dict[str, VariableInfo]:
        read_ = {node.op.key for node in infer.nodes() if isinstance(node.op, Variable)}
        unused = self._variables.keys() - read_
        if unused:
            logger.debug("initializers that nothing reads: %s", sorted(unused))
        return {key: info for key, info in self._variables.items() if key in read_}

    def _metadata(self) -> dict[str, str]:
        model = self._parsed.model
        own = {"edgewise.onnx.opset": str(self._opset)}
        if model.producer_name:
            own["edgewise.onnx.producer"] = model.producer_name
        return {item.key: item.value for item in model.metadata_props} | own


def _statistics(graph: onnx.GraphProto) -> frozenset[str]:
    """Names of running means and variances, seen through ``Identity``."""
    alias: dict[str, str] = {}
    found: set[str] = set()
    for node in graph.node:
        if node.op_type == "Identity" and node.input and node.output:
            alias[node.output[0]] = alias.get(node.input[0], node.input[0])
        if node.op_type == "BatchNormalization":
            found.update(alias.get(name, name) for name in node.input[3:5])
    return frozenset(found)


def _refuse_unknown(nodes: Iterable[onnx.NodeProto], version: int) -> None:
    """Raise for all operators at once that edgewise does not have."""
    unknown = [
        node
        for node in nodes
        if node.domain not in MAIN_DOMAINS or importer_of(node.op_type, version) is None
    ]
    if not unknown:
        return
    first = unknown[0]
    title = f"{first.domain or 'ai.onnx'}.{first.op_type} (opset {version})"
    others = sorted({node.op_type for node in unknown} - {first.op_type})
    reason = "edgewise does not have this operator"
    if others:
        reason += f", nor {', '.join(others)}"
    name = first.name or next(iter(first.output), first.op_type)
    raise UnsupportedOpError(title, name, reason, _nearest(first))


def _nearest(node: onnx.NodeProto) -> str:
    import difflib  # noqa: PLC0415 - only for the message

    close = difflib.get_close_matches(node.op_type, supported(), 1)
    if close:
        return f"the nearest that it has is {close[0]}"
    return "replace it with standard operators before export"
