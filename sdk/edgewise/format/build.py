"""Records to FlatBuffers; the mirror of ``tables``."""

from __future__ import annotations

import struct
from typing import Any

from flatbuffers.builder import Builder

from edgewise.format.records import Field, Record


def build(root: Record, identifier: bytes) -> bytes:
    """The size-prefixed buffer of ``root``; equal records give equal bytes."""
    builder = Builder(1024)
    builder.FinishSizePrefixed(_table(builder, root), identifier)
    return bytes(builder.Output())


def _table(builder: Builder, record: Record) -> int:
    scalars: list[tuple[Field, Any]] = []
    offsets: list[tuple[Field, int]] = []
    for field in record.fields:
        value = getattr(record, field.name)
        if field.kind == "scalar" and not field.many:
            # Bytes are compared, not values: -0.0 is not the default 0.0.
            if _packed(field.code, value) != _packed(field.code, field.default):
                scalars.append((field, value))
        elif _is_given(field, value):
            offsets.append((field, _reference(builder, field, value)))
    builder.StartObject(len(record.fields))
    # The largest first leaves no gaps between them.
    for field, value in sorted(
        scalars, key=lambda pair: -struct.calcsize(pair[0].code)
    ):
        size = struct.calcsize(field.code)
        builder.Prep(size, 0)
        _place(builder, _packed(field.code, value))
        builder.Slot(field.slot)
    for field, offset in offsets:
        builder.PrependUOffsetTRelative(offset)
        builder.Slot(field.slot)
    end: int = builder.EndObject()
    return end


def _is_given(field: Field, value: object) -> bool:
    return field.required or (bool(value) if value != b"" else True)


def _reference(builder: Builder, field: Field, value: Any) -> int:
    if field.kind in {"scalar", "struct"}:
        return _vector(builder, field.code, value)
    if field.many:
        offsets = [_part(builder, field, item) for item in value]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        end: int = builder.EndVector()
        return end
    return _part(builder, field, value)


def _part(builder: Builder, field: Field, value: Any) -> int:
    if field.kind == "table":
        return _table(builder, value)
    shared: int = builder.CreateSharedString(value)
    return shared


def _vector(builder: Builder, code: str, values: Any) -> int:
    size = struct.calcsize(f"<{code}")
    builder.StartVector(size, len(values), min(size & -size, 8))
    if code == "B":
        _place(builder, values)
    else:
        rows = values if len(code) > 1 else ((value,) for value in values)
        _place(builder, b"".join(struct.pack(f"<{code}", *row) for row in rows))
    end: int = builder.EndVector()
    return end


def _packed(code: str, value: float) -> bytes:
    return struct.pack(f"<{code}", value)


def _place(builder: Builder, data: bytes) -> None:
    """Put ``data`` before all else; ``Prep`` or ``StartVector`` has made the room."""
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
