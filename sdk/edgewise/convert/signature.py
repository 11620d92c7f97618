"""Nodes against what ONNX says of their operators, before anything is made of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx
from onnx import AttributeProto, defs

from edgewise.convert.source import MAIN_DOMAINS

# The field that holds the value of an attribute of a type.
FIELDS = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
LISTS = frozenset(
    name for name in FIELDS.values() if name.endswith("s") and name != "s"
)


def field_of(attribute: AttributeProto) -> str:
    """The field that holds its value; the first version of ONNX had no types."""
    if attribute.type:
        return FIELDS.get(attribute.type, "")
    return next(iter(_present(attribute)), "ints")


def fault(node: onnx.NodeProto) -> str:
    """What is wrong with the attributes of a node by themselves; empty: nothing."""
    seen: set[str] = set()
    for item in node.attribute:
        if item.name in seen:
            return f"its attribute {item.name!r} is given twice"
        seen.add(item.name)
        field, present = field_of(item), _present(item)
        if not set(present) <= {field} or not (present or field in LISTS):
            return f"its attribute {item.name!r} is not of the type that it says"
    return ""


def misfit(node: onnx.NodeProto, version: int) -> str:
    """How a node differs from what ONNX says of its operator; empty: it does not."""
    schema = _schema(node.op_type, version, node.domain)
    if schema is None:
        return ""
    attributes = _attributes(schema)
    for item in node.attribute:
        wanted, field = attributes.get(item.name), field_of(item)
        if wanted is not None and wanted != field:
            return f"its attribute {item.name!r} holds {field!r}; want {wanted!r}"
    if len(node.input) < schema.min_input:
        return f"it reads {len(node.input)} values; want {schema.min_input} or more"
    if len(node.input) > schema.max_input:
        return f"it reads {len(node.input)} values; want at most {schema.max_input}"
    if len(node.output) > schema.max_output:
        return f"it makes {len(node.output)} values; want at most {schema.max_output}"
    return ""


def _present(attribute: AttributeProto) -> list[str]:
    return [
        name
        for name in FIELDS.values()
        if (
            len(getattr(attribute, name)) if name in LISTS else attribute.HasField(name)
        )
    ]


@cache
def _schema(name: str, version: int, domain: str) -> defs.OpSchema | None:
    try:
        return defs.get_schema(name, version, "" if domain in MAIN_DOMAINS else domain)
    except defs.SchemaError:
        return None


def _attributes(schema: Any) -> dict[str, str]:
    key = schema.domain, schema.name, schema.since_version
    if key not in _known:
        _known[key] = {
            name: FIELDS.get(int(item.type.value), "")
            for name, item in schema.attributes.items()
        }
    return _known[key]


_known: dict[tuple[str, str, int], dict[str, str]] = {}
