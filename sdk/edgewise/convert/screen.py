"""What is refused before anything is read: names that are no text, graphs too large."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import onnx
from google.protobuf.descriptor import (  # type: ignore[import-untyped]  # no stubs
    FieldDescriptor,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]  # the same

from edgewise.errors import ModelFormatError

MAX_NAME = 8192  # characters
MAX_NODES = 100_000
MAX_NESTED = 100  # messages within messages
# Comments, and texts that are data.
_LONG = frozenset({"doc_string", "value"})


def want_sane(path: str, model: onnx.ModelProto) -> None:
    """Raise ``ModelFormatError`` where a model is beyond what any is."""
    nodes = 0
    waiting: list[tuple[Message, int]] = [(model, 0)]
    while waiting:
        message, depth = waiting.pop()
        nodes += message.DESCRIPTOR.name == "NodeProto"
        if nodes > MAX_NODES or depth > MAX_NESTED:
            raise ModelFormatError(
                path,
                f"has more than {MAX_NODES} nodes, or messages more than {MAX_NESTED}"
                " deep",
            )
        for field in _of_interest(message.DESCRIPTOR):
            if not field.is_repeated and not message.HasField(field.name):
                continue
            value = getattr(message, field.name)
            items = value if field.is_repeated else (value,)
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                waiting += ((item, depth + 1) for item in items)
            else:
                _want_names(path, field.name, items)


def _want_names(path: str, field: str, texts: Iterable[str | bytes]) -> None:
    for text in texts:
        # What is no UTF-8 is given as the bytes that it is.
        if isinstance(text, bytes) and field != "doc_string":
            raise ModelFormatError(
                path, f"holds a {field} that is no text: {text[:40]!r}"
            )
        if field not in _LONG and len(text) > MAX_NAME:
            raise ModelFormatError(
                path, f"holds a {field} of {len(text)} characters: {text[:40]!r}"
            )


@cache
def _of_interest(descriptor: Any) -> tuple[Any, ...]:
    """The fields that hold texts or messages."""
    kinds = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE)
    return tuple(field for field in descriptor.fields if field.type in kinds)
