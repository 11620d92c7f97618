"""How much a protobuf message holds, counted before anything is made of it.

An empty message takes 2 bytes in a file and a hundred in memory: without a count of
them, a small file could fill any machine.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

MAX_FIELDS = 1 << 21  # ten a node, so twice what the most nodes take
MAX_NESTED = 100  # what parsers of protobuf take

# Numbers of the fields that are messages, with what those are.
Fields: TypeAlias = dict[int, Any]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """What is wrong with the bytes of a message."""


def measure(data: bytes, descriptor: Any) -> int:
    """How many fields a message and those within it have.

    Args:
        data: Its bytes.
        descriptor: What kind of message it is.

    Raises:
        WireError: It is damaged, or holds more than any model does.
    """
    count = 0
    parts = [(0, len(data), descriptor, 0)]
    while parts:
        at, end, kind, depth = parts.pop()
        inner = _messages(kind)
        if depth > MAX_NESTED:
            raise WireError(f"has messages nested more than {MAX_NESTED} deep")
        while at < end:
            count += 1
            if count > MAX_FIELDS:
                raise WireError(f"has more than {MAX_FIELDS} fields")
            tag = data[at]
            if tag < 0x80:  # as nearly always
                at += 1
            else:
                tag, at = _varint(data, at, end)
            size, at = _size(data, at, end, tag & 7)
            if size > end - at:
                raise WireError("is cut short")
            if tag & 7 == _LENGTH and tag >> 3 in inner:
                parts.append((at, at + size, inner[tag >> 3], depth + 1))
            at += size
    return count


def _size(data: bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Bytes of a field's value, and where they begin."""
    if wire == _LENGTH:
        if at < end and data[at] < 0x80:
            return data[at], at + 1
        return _varint(data, at, end)
    if wire == _VARINT:
        return 0, _varint(data, at, end)[1]
    if wire in (_FIXED64, _FIXED32):
        return 8 if wire == _FIXED64 else 4, at
    raise WireError("has a field of no known kind")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise WireError("is cut short, or holds a number that is none")


@cache
def _messages(descriptor: Any) -> Fields:
    return {
        field.number: field.message_type
        for field in descriptor.fields
        if field.message_type is not None
    }
