"""Operators that are written as graphs: the model's own, and those that ONNX gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx
from onnx import defs, helper

from edgewise.convert import contrib
from edgewise.convert.source import Parsed
from edgewise.convert.tensors import DTYPES
from edgewise.dims import Expr
from edgewise.ir.graph import Value
from edgewise.types import (
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)

MAX_CALLS = 32  # functions within functions
_CODES = {dtype: code for code, dtype in DTYPES.items()}


class Called(NamedTuple):
    """A function and what a call gives it.

    Attributes:
        function: Inputs, outputs, nodes.
        attributes: By name, defaults included.
        own: Whether the model brought it.
    """

    function: onnx.FunctionProto
    attributes: Mapping[str, onnx.AttributeProto]
    own: bool


class Functions:
    """The functions that a model's nodes may call."""

    def __init__(self, parsed: Parsed) -> None:
        self._own: dict[tuple[str, str, str], onnx.FunctionProto] = {}
        for function in parsed.model.functions:
            key = _domain(function.domain), function.name, function.overload
            if key in self._own:
                raise parsed.error(f"function {function.name!r} is defined twice")
            self._own[key] = function

    def own(self, node: onnx.NodeProto) -> Called | None:
        """The function of the model that ``node`` calls."""
        found = self._own.get((_domain(node.domain), node.op_type, node.overload))
        if found is None:
            return None
        given = {item.name: item for item in found.attribute_proto}
        given |= {item.name: item for item in node.attribute}
        return Called(found, given, own=True)

    def standard(
        self, node: onnx.NodeProto, version: int, inputs: Sequence[Value | None]
    ) -> Called | None:
        """The graph that ONNX itself defines the operator by, or onnxruntime."""
        if contrib.is_known(node):
            return Called(contrib.graph_of(node, inputs), {}, own=False)
        schema = _schema(node, version)
        if schema is None:
            return None
        given = {
            name: item.default_value
            for name, item in schema.attributes.items()
            if item.default_value.type
        }
        given |= {item.name: item for item in node.attribute}
        function = onnx.FunctionProto()
        if schema.has_function:
            since = _nearest(schema.function_opset_versions, version)
            data = schema.get_function_with_opset_version(since)
        else:
            since = _nearest(schema.context_dependent_function_opset_versions, version)
            data = schema.get_context_dependent_function_with_opset_version(
                since,
                node.SerializeToString(),
                [_type_bytes(value) for value in inputs],
            )
        if not data:
            return None
        function.ParseFromString(data)
        return Called(function, given, own=False)


def has_body(node: onnx.NodeProto, version: int) -> bool:
    """Whether ONNX defines the operator by a graph, or onnxruntime."""
    return contrib.is_known(node) or _schema(node, version) is not None


def _schema(node: onnx.NodeProto, version: int) -> defs.OpSchema | None:
    try:
        schema = defs.get_schema(node.op_type, version, _domain(node.domain))
    except defs.SchemaError:
        return None
    if schema.has_function or schema.has_context_dependent_function:
        return schema
    return None


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else str(name)


def _nearest(versions: Sequence[int], wanted: int) -> int:
    """The newest body that is not newer than the model."""
    return max((v for v in versions if v <= wanted), default=min(versions))


def _type_bytes(value: Value | None) -> bytes:
    data: bytes = b"" if value is None else onnx_type(value.kind).SerializeToString()
    return data


def onnx_type(kind: ValueType | Unranked) -> onnx.TypeProto:
    """How ONNX writes a type."""
    if isinstance(kind, Unranked):
        return helper.make_tensor_type_proto(_CODES[kind.dtype], None)
    if isinstance(kind, TensorType):
        shape = [str(dim) if isinstance(dim, Expr) else dim for dim in kind.shape]
        return helper.make_tensor_type_proto(_CODES[kind.dtype], shape)
    inner = onnx_type(kind.element)
    if isinstance(kind, SequenceType):
        return helper.make_sequence_type_proto(inner)
    return helper.make_optional_type_proto(inner)


def resolved(
    node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]
) -> onnx.NodeProto:
    """A node of a function with the attributes of a call in place of their names."""
    if not any(item.ref_attr_name for item in node.attribute):
        return node
    fresh = onnx.NodeProto()
    fresh.CopyFrom(node)
    del fresh.attribute[:]
    for item in node.attribute:
        value = given.get(item.ref_attr_name) if item.ref_attr_name else item
        if value is not None:  # what the call leaves out is left out here
            fresh.attribute.add().CopyFrom(value)
            fresh.attribute[-1].name = item.name
    return fresh
