"""FlatBuffers to records: every byte is checked before it is believed.

The format allows what a hostile file may exploit: tables that share parts, so that a
small file unfolds without end, offsets that point anywhere, vtables that promise more
than there is.  The decoder walks the schema's fields, checks bounds and alignment of
all it reads, and spends the bytes of the buffer as it goes: no table or vector may be
read twice, so the work is bounded by the size of the file.  Texts and vtables may be
shared; each is decoded once.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

from edgewise.format.records import Field, Record
from edgewise.named import NamedTuple

MAX_DEPTH = 24

_R = TypeVar("_R", bound=Record)
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


class DamageError(Exception):
    """What is wrong with a file; readers turn it into ``ModelFormatError``."""


class _Plan(NamedTuple):
    """How to read the tables that share a vtable.

    Attributes:
        span: Bytes of the table.
        inline: Reads all present fields at once.
        names: Their names, in the order of ``inline``.
        references: Those that are offsets: the place in the table, and the field.
    """

    span: int
    inline: struct.Struct
    names: tuple[str, ...]
    references: tuple[tuple[int, Field], ...]


class Decoder:
    """Reads records out of a buffer that nobody changes meanwhile."""

    def __init__(self, data: bytes) -> None:
        self._data, self._end = data, len(data)
        self._unspent = len(data)
        self._plans: dict[tuple[int, type[Record], int], _Plan] = {}
        self._texts: dict[int, str] = {}

    def root(self, record: type[_R], start: int) -> _R:
        """The record whose offset lies at ``start``."""
        self._want(start, 4, 4, "root")
        return self._table(start + _U32.unpack_from(self._data, start)[0], record, 0)

    def _table(self, at: int, record: type[_R], depth: int) -> _R:
        if at & 3 or at + 4 > self._end:
            raise self._bad(at, record.__name__)
        if depth > MAX_DEPTH:
            raise DamageError(f"tables are nested deeper than {MAX_DEPTH}")
        vtable = at - _I32.unpack_from(self._data, at)[0]
        key = vtable, record, at & 7
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(vtable, record, at & 7)
        span, inline, names, references = plan
        if at + span > self._end:
            raise self._bad(at, record.__name__)
        self._unspent -= span
        if self._unspent < 0:
            raise self._again(at, record.__name__)
        made = record.__new__(record)
        values = made.__dict__
        values.update(zip(names, inline.unpack_from(self._data, at), strict=True))
        for place, field in references:
            name, target = field.name, at + place + values[field.name]
            if field.many:
                values[name] = self._vector(target, field, depth)
            elif field.of is not None:
                values[name] = self._table(target, field.of, depth + 1)
            else:
                values[name] = self._texts.get(target) or self._text(target, name)
        return made

    def _plan(self, vtable: int, record: type[Record], phase: int) -> _Plan:
        name = record.__name__
        self._want(vtable, 4, 2, f"vtable of {name}")
        size, span = struct.unpack_from("<HH", self._data, vtable)
        if size < 4 or size & 1 or span < 4:
            raise DamageError(f"the vtable of {name} has size {size}, table {span}")
        self._want(vtable, size, 2, f"vtable of {name}")
        slots = struct.unpack_from(f"<{size // 2 - 2}H", self._data, vtable + 4)
        present: list[tuple[int, Field]] = []
        for field in record.fields:
            place = slots[field.slot] if field.slot < len(slots) else 0
            if place:
                present.append((place, field))
            elif field.required:
                raise DamageError(f"{name} has no {field.name}")
        return _layout(name, sorted(present, key=lambda p: p[0]), span, phase)

    def _vector(self, at: int, field: Field, depth: int) -> Any:
        name, data, start = field.name, self._data, at + 4
        if at & 3 or start > self._end:
            raise self._bad(at, name)
        code = field.code or "I"
        count, size = _U32.unpack_from(data, at)[0], struct.calcsize("<" + code)
        if start + count * size > self._end or start % min(size & -size, 8):
            raise self._bad(start, name)
        self._unspent -= 4 + count * size
        if self._unspent < 0:
            raise self._again(at, name)
        if size == 1:
            return data[start : start + count]
        if field.kind == "struct":
            return tuple(struct.iter_unpack("<" + code, data[start:][: count * size]))
        items = struct.unpack_from(f"<{count}{code}", data, start)
        if field.kind == "scalar":
            return items
        places = [start + 4 * index + item for index, item in enumerate(items)]
        if field.of is None:
            return tuple([self._text(place, name) for place in places])
        of = field.of
        return tuple([self._table(place, of, depth + 1) for place in places])

    def _text(self, at: int, name: str) -> str:
        known = self._texts.get(at)
        if known is not None:
            return known
        self._want(at, 4, 4, name)
        start, length = at + 4, _U32.unpack_from(self._data, at)[0]
        if start + length >= self._end:
            raise self._bad(at, name)
        self._unspent -= 5 + length
        if self._unspent < 0:
            raise self._again(at, name)
        if self._data[start + length]:
            raise DamageError(f"the text of {name} at byte {at} has no end")
        try:
            text = self._data[start : start + length].decode()
        except UnicodeDecodeError:
            raise DamageError(f"the text of {name} at byte {at} is not UTF-8") from None
        self._texts[at] = text
        return text

    def _want(self, at: int, size: int, alignment: int, what: str) -> None:
        if at < 0 or at + size > self._end or at % alignment:
            raise self._bad(at, what)

    @staticmethod
    def _bad(at: int, what: str) -> DamageError:
        return DamageError(f"{what} at byte {at} lies beyond the header or unaligned")

    @staticmethod
    def _again(at: int, what: str) -> DamageError:
        return DamageError(f"{what} at byte {at} reads parts of the header again")


def _layout(
    name: str, present: list[tuple[int, Field]], span: int, phase: int
) -> _Plan:
    position, parts = 0, ["<"]
    for place, field in present:
        code = field.code if field.kind == "scalar" and not field.many else "I"
        size = struct.calcsize(code)
        if place < max(position, 4) or (phase + place) % size:
            raise DamageError(f"{name} has {field.name} at a wrong place")
        parts.append(f"{place - position}x{code}")
        position = place + size
    if position > span:
        raise DamageError(f"{name} is shorter than its fields")
    references = tuple(
        (place, field) for place, field in present if field.many or not field.code
    )
    names = tuple(field.name for _, field in present)
    return _Plan(span, struct.Struct("".join(parts)), names, references)
