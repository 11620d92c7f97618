"""What the attributes of an op hold, read off its class."""

from __future__ import annotations

import enum
import sys
import typing
from typing import Any

from edgewise.dims import Expr
from edgewise.errors import InternalError
from edgewise.format._generated.schema import KINDS
from edgewise.ir.op import Op
from edgewise.named import NamedTuple

INT, FLOAT, BOOL, TEXT, DIM, ENUM, INTS, TUPLE = range(len(KINDS))


class Form(NamedTuple):
    """What a field is declared to hold.

    Attributes:
        kind: A kind of the schema.
        item: Form of the items of a tuple.
        members: The class of an enum.
    """

    kind: int
    item: Form | None = None
    members: type[enum.Enum] | None = None


_SIMPLE = {
    "int": Form(INT),
    "float": Form(FLOAT),
    "bool": Form(BOOL),
    "str": Form(TEXT),
    "Dim": Form(DIM),
}
_known: dict[type[Op], dict[str, Form]] = {}


def forms(op: type[Op]) -> dict[str, Form]:
    """What the fields of an op class hold, by name and in order."""
    found = _known.get(op)
    if found is None:
        found = {field.name: _form(op, _text(field.kind)) for field in op.fields}
        _known[op] = found
    return found


def _form(op: type[Op], text: str) -> Form:
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("tuple[") and text.endswith(", ...]"):
        return Form(TUPLE, item=_form(op, text[6:-6]))
    for base in op.__mro__:
        named = getattr(sys.modules[base.__module__], text, None)
        if isinstance(named, type) and issubclass(named, enum.Enum):
            return Form(ENUM, members=named)
    raise InternalError(f"{op.__name__}: no file holds an attribute of type {text}")


def _text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if typing.get_origin(annotation) is tuple:
        return f"tuple[{_text(typing.get_args(annotation)[0])}, ...]"
    if isinstance(annotation, type):
        return annotation.__name__
    return "Dim" if Expr in typing.get_args(annotation) else str(annotation)
