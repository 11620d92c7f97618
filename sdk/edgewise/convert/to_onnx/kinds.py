"""Types of values as ONNX writes them."""

from __future__ import annotations

import onnx
from onnx import helper

from edgewise.convert.to_onnx.writer import CODES
from edgewise.types import (
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)


def value_info(name: str, kind: ValueType) -> onnx.ValueInfoProto:
    """The declaration of an input or an output."""
    info = onnx.ValueInfoProto(name=name)
    info.type.CopyFrom(_type(kind))
    return info


def _type(kind: ValueType | Unranked) -> onnx.TypeProto:
    if isinstance(kind, SequenceType):
        return helper.make_sequence_type_proto(_type(kind.element))
    if isinstance(kind, OptionalType):
        return helper.make_optional_type_proto(_type(kind.element))
    code = CODES[kind.dtype]
    if isinstance(kind, TensorType):
        sizes = [dim if isinstance(dim, int) else str(dim) for dim in kind.shape]
        return helper.make_tensor_type_proto(code, sizes)
    return helper.make_tensor_type_proto(code, None)
