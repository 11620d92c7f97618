"""Mutants: bytes changed blindly, or fields of a parsed model by somebody who knows."""

from __future__ import annotations

import random
import struct
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor

from edgewise.format.container import aligned, seal

WHOLE = (0, 1, -1, 2, 3, 7, 16, 255, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1)
FRACTIONS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 0.5)
_NUMBERS = (0, 1, 2, 3, 4, 8, 16, 100, 2**31 - 1, 2**31, 2**32 - 1)
TEXTS = ("", "x", "y", "Relu", "N", "ai.onnx", "a/../../b", "\0", "ż" * 300)


def changed(rng: random.Random, good: bytes) -> bytes:
    """Some bytes changed, doubled or cut out."""
    data = bytearray(good)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                data[at : at + 4] = struct.pack("<I", rng.choice((0, 2**31, 2**32 - 1)))
            case 3:
                del data[at : at + rng.randrange(1, 64)]
            case 4:
                data[at:at] = data[max(0, at - 32) : at]
            case 5:
                source = rng.randrange(len(data))
                data[at : at + 16] = data[source : source + 16]
        data = data or bytearray(b"x")
    return bytes(data)


def sealed(rng: random.Random, good: bytes) -> bytes:
    """An ``.ew`` file changed; in half of all cases with a checksum that is right."""
    if rng.random() < 0.5:
        return changed(rng, good)
    size = struct.unpack_from("<I", good)[0]
    header, data = good[: 4 + size], good[aligned(8 + size) :]
    fresh = bytearray(header)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        # Where numbers and offsets lie; what moves them all is refused at once.
        at = rng.randrange(12, len(fresh)) & ~3
        match rng.randrange(4):
            case 0:
                fresh[at] ^= 1 << rng.randrange(8)
            case 1:
                fresh[at : at + 4] = struct.pack("<I", rng.choice(_NUMBERS))
            case 2:
                fresh[at & ~7 : (at & ~7) + 8] = struct.pack("<q", rng.choice(WHOLE))
            case 3:
                source = rng.randrange(12, len(fresh)) & ~3
                fresh[at : at + 4] = fresh[source : source + 4]
    fresh[0:4] = struct.pack("<I", len(fresh) - 4)
    return seal(bytes(fresh)) + data


def fields(rng: random.Random, good: bytes, other: bytes) -> onnx.ModelProto:
    """A model with fields at extremes, in each other's places, or from elsewhere."""
    model = onnx.ModelProto.FromString(good)
    donor = onnx.ModelProto.FromString(other)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        messages = _messages(model)
        message = rng.choice(messages)
        field = rng.choice(message.DESCRIPTOR.fields)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            _remake(rng, message, field, [*messages, *_messages(donor)])
        elif field.is_repeated:
            _rewrite(rng, message, field, messages)
        else:
            setattr(message, field.name, _scalar(rng, field, messages))
    return model


def _messages(message: Any) -> list[Any]:
    """A message and all within it."""
    found = [message]
    for part in found:
        for field, value in part.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                found += value if field.is_repeated else (value,)
    return found


def _remake(rng: random.Random, message: Any, field: Any, all_: list[Any]) -> None:
    """Drop, double or move a message, or take one of its kind from elsewhere."""
    kind = field.message_type.full_name
    donors = [m for m in all_ if m.DESCRIPTOR.full_name == kind]
    if not field.is_repeated:
        if rng.random() < 0.3 or not donors:
            message.ClearField(field.name)
        else:
            fresh = type(rng.choice(donors))()
            fresh.CopyFrom(rng.choice(donors))
            getattr(message, field.name).CopyFrom(fresh)
        return
    items = list(getattr(message, field.name))
    match rng.randrange(4):
        case 0 if items:
            items.pop(rng.randrange(len(items)))
        case 1 if items:
            rng.shuffle(items)
        case _:
            if donors and len(all_) < 5000:
                items.insert(rng.randrange(len(items) + 1), rng.choice(donors))
    copies = []
    for item in items:
        copies.append(type(item)())
        copies[-1].CopyFrom(item)
    message.ClearField(field.name)
    getattr(message, field.name).extend(copies)


def _rewrite(rng: random.Random, message: Any, field: Any, all_: list[Any]) -> None:
    """Change, drop or add elements of a list."""
    items = list(getattr(message, field.name))
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(items) + 1)
        fresh = _scalar(rng, field, all_)
        match rng.randrange(3):
            case 0 if items:
                items.pop(at % len(items))
            case 1 if items:
                items[at % len(items)] = fresh
            case _:
                items.insert(at, fresh)
    message.ClearField(field.name)
    getattr(message, field.name).extend(items)


def _scalar(rng: random.Random, field: Any, all_: list[Any]) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        node = rng.choice(all_)
        names = [v for f, v in node.ListFields() if isinstance(v, str)]
        return rng.choice((*TEXTS, *names, *names, *names))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\xff" * 4, b"nearest", b"add", rng.randbytes(16)))
    if field.enum_type is not None:
        return rng.choice([value.number for value in field.enum_type.values])
    if field.cpp_type in (
        FieldDescriptor.CPPTYPE_FLOAT,
        FieldDescriptor.CPPTYPE_DOUBLE,
    ):
        return rng.choice(FRACTIONS)
    number = rng.choice(WHOLE)
    if field.cpp_type == FieldDescriptor.CPPTYPE_INT32:
        return rng.choice((rng.randrange(28), max(min(number, 2**31 - 1), -(2**31))))
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return abs(number)
    return rng.choice((number, rng.randrange(-4, 12)))
