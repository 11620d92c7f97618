"""What a FlatBuffers table is to us: a record with the fields its schema names."""

from __future__ import annotations

from typing import ClassVar

from edgewise.named import NamedTuple


class Field(NamedTuple):
    """Where and how a table holds one field.

    Attributes:
        name: Its name, here and in the schema.
        slot: Its place in the vtable.
        kind: ``scalar``, ``text``, ``table`` or ``struct``.
        code: ``struct`` format of a scalar or of a struct.
        many: Whether it is a vector of those.
        default: What a scalar is when absent.
        required: Whether it must be present.
        of: Record of a table, or of the tables in a vector.
    """

    name: str
    slot: int
    kind: str
    code: str = ""
    many: bool = False
    default: int | float = 0
    required: bool = False
    of: type[Record] | None = None


class Record:
    """A decoded table; a field that is absent reads as its class's default."""

    fields: ClassVar[tuple[Field, ...]] = ()

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)
