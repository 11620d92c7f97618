"""Ops to tables and back, generic over the attributes their classes declare.

An attribute that the class does not have, or one of another kind, is damage: a file can
only say what the op could have been given.
"""

from __future__ import annotations

import numbers
import operator
import re
from typing import Any

from edgewise.dim_text import parse
from edgewise.dims import Dim, Expr
from edgewise.errors import InternalError, ShapeError
from edgewise.format._generated.schema import KINDS, Attribute
from edgewise.format._generated.schema import Op as OpTable
from edgewise.format.forms import (
    BOOL,
    DIM,
    ENUM,
    FLOAT,
    INT,
    INTS,
    TEXT,
    TUPLE,
    Form,
    forms,
)
from edgewise.format.tables import DamageError
from edgewise.ir.op import REQUIRED, AttributeValue, Op

# Anything else in an expression is refused before Python's parser sees it.
_EXPRESSION = re.compile(r"[\w+*(), -]+")


def encode(op: Op) -> OpTable:
    """The op as a table; attributes at their default are left out."""
    attributes = []
    for field, form in zip(op.fields, forms(type(op)).values(), strict=True):
        value = getattr(op, field.name)
        if field.default is not REQUIRED and repr(value) == repr(field.default):
            continue
        try:
            attribute = _encode(value, form)
        except (TypeError, ValueError, AttributeError) as error:
            raise InternalError(
                f"{op.name}: attribute {field.name} is {value!r}; want {field.kind}"
            ) from error
        attribute.name = field.name
        attributes.append(attribute)
    return OpTable(name=op.name, attributes=tuple(attributes))


def _encode(value: Any, form: Form) -> Attribute:
    if form.kind == TUPLE and form.item is not None:
        items = tuple(_encode(item, form.item) for item in value)
        if items and all(item.kind == INT for item in items):
            wholes = tuple(item.whole for item in items)
            return Attribute(kind=INTS, wholes=wholes)
        return Attribute(kind=TUPLE, items=items)
    if form.kind == DIM and isinstance(value, Expr):
        return Attribute(kind=DIM, text=str(value))
    if form.kind in {INT, DIM}:
        return Attribute(kind=INT, whole=_whole(value))
    if form.kind == BOOL:
        return Attribute(kind=BOOL, whole=[False, True].index(value))
    if form.kind == FLOAT:
        if not isinstance(value, numbers.Real):
            raise TypeError(value)
        return Attribute(kind=FLOAT, real=float(value))
    if form.kind == ENUM:
        return Attribute(kind=ENUM, text=value.name)
    if not isinstance(value, str):
        raise TypeError(value)
    return Attribute(kind=TEXT, text=value)


def _whole(value: Any) -> int:
    whole = operator.index(value)
    if not -(2**63) <= whole < 2**63:
        raise ValueError(value)
    return whole


def decode(table: OpTable, op: type[Op]) -> Op:
    """The op that a table describes.

    Raises:
        DamageError: An attribute is unknown, given twice, missing or of another kind.
    """
    wanted = forms(op)
    values: dict[str, AttributeValue] = {}
    for attribute in table.attributes:
        name = attribute.name
        if name not in wanted or name in values:
            why = "given twice" if name in values else "unknown"
            raise DamageError(f"op {op.name}: attribute {name!r} is {why}")
        try:
            values[name] = _decode(attribute, wanted[name])
        except (ValueError, KeyError) as error:
            raise DamageError(f"op {op.name}: attribute {name!r}: {error}") from None
    for field in op.fields:
        if field.default is REQUIRED and field.name not in values:
            raise DamageError(f"op {op.name}: attribute {field.name!r} is missing")
    return op(**values)


def _decode(attribute: Attribute, form: Form) -> AttributeValue:
    kind, wanted = attribute.kind, form.kind
    if wanted == TUPLE and form.item is not None:
        return _decode_tuple(attribute, form.item)
    if wanted == DIM and kind == INT:
        return attribute.whole
    if kind != wanted:
        raise ValueError(f"is {_name(kind)}; want {KINDS[wanted]}")
    if kind == FLOAT:
        return attribute.real
    if kind == DIM:
        return expression(attribute.text)
    if kind == BOOL:
        if attribute.whole not in {0, 1}:
            raise ValueError(f"is {attribute.whole}; want 0 or 1")
        return bool(attribute.whole)
    if kind == ENUM and form.members is not None:
        return form.members[attribute.text]
    return attribute.whole if kind == INT else attribute.text


def _decode_tuple(attribute: Attribute, item: Form) -> tuple[AttributeValue, ...]:
    if attribute.kind == TUPLE:
        return tuple(_decode(part, item) for part in attribute.items)
    if attribute.kind != INTS:
        raise ValueError(f"is {_name(attribute.kind)}; want a tuple")
    if item.kind not in {INT, DIM}:
        raise ValueError(f"is a tuple of INT; want one of {KINDS[item.kind]}")
    return attribute.wholes


def _name(kind: int) -> str:
    return KINDS[kind] if kind < len(KINDS) else f"of an unknown kind {kind}"


def expression(text: str) -> Dim:
    """The size that a file spells.

    Raises:
        ValueError: It is no size.
    """
    if not _EXPRESSION.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a size")
    try:
        return parse(text)
    except (ShapeError, TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from None
