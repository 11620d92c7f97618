"""Types that an op is told, since its inputs do not decide them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

from edgewise.dims import Dim, Expr
from edgewise.errors import DTypeError
from edgewise.ir.op import AttributeValue, Op
from edgewise.types import (
    ANY,
    DType,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)

_NAMES = frozenset(dtype.value for dtype in DType)
_KIND = re.compile(r"(optional\()?(sequence\()?([a-z0-9]+)(\[\.\.\.\])?(\)*)")


class Declared(Op):
    """An op with the types of its outputs among its attributes.

    Attributes:
        kinds: Their types without sizes: ``f32``, ``sequence(f32)``,
            ``optional(sequence(string))``; ``sequence(f32[...])`` for any shapes.
        shapes: Their sizes, those of the element for containers, where -1 is any size.
    """

    objects = True
    kinds: tuple[str, ...]
    shapes: tuple[tuple[Dim, ...], ...]

    @classmethod
    def giving(cls, types: Sequence[ValueType], **attributes: AttributeValue) -> Self:
        """The op with outputs of ``types``."""
        kinds, shapes = (
            zip(*map(_declaration, types), strict=True) if types else ((), ())
        )
        return cls(kinds=kinds, shapes=shapes, **attributes)

    def declared(self) -> tuple[ValueType, ...]:
        """The types of the outputs."""
        if len(self.kinds) != len(self.shapes):
            raise self.refuse((self.kinds, self.shapes), "one shape for every kind")
        return tuple(map(_type, self.kinds, self.shapes))


def _declaration(type_: ValueType) -> tuple[str, tuple[Dim, ...]]:
    if isinstance(type_, TensorType):
        return type_.dtype.value, type_.shape
    inner = type_.element
    if isinstance(inner, Unranked):
        return str(type_), ()
    kind, shape = _declaration(inner)
    name = "sequence" if isinstance(type_, SequenceType) else "optional"
    return f"{name}({kind})", tuple(-1 if isinstance(d, Expr) else d for d in shape)


def _type(kind: str, shape: tuple[Dim, ...]) -> ValueType:
    found = _KIND.fullmatch(kind)
    if found is None or len(found[5]) != bool(found[1]) + bool(found[2]):
        raise DTypeError(f"got the kind of value {kind!r}; want f32, sequence(f32), …")
    optional, sequence, name, unranked, _ = found.groups()
    if name not in _NAMES:
        raise DTypeError(f"got the element type {name!r}; want one of those known")
    dtype = DType(name)
    if not optional and not sequence:
        if unranked or -1 in shape:
            raise DTypeError(f"got {kind} of {shape}; want a shape with known axes")
        return TensorType(dtype, shape)
    element = TensorType(dtype, tuple(ANY if dim == -1 else dim for dim in shape))
    held = Unranked(dtype) if unranked else element
    inner = SequenceType(held) if sequence else held
    if optional:
        return OptionalType(inner)
    return SequenceType(held)
