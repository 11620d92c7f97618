"""Types that differ from one branch, or one turn, to the next: what holds them all."""

from __future__ import annotations

from collections.abc import Collection

from edgewise.convert.context import OpContext
from edgewise.dims import Dim, Shape
from edgewise.ir.graph import Value
from edgewise.ops.optional import Optional
from edgewise.types import (
    ANY,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)


def differ_in_rank(a: ValueType, b: ValueType) -> bool:
    """Whether they are tensors that no one type holds, for their number of axes."""
    return isinstance(a, TensorType) and isinstance(b, TensorType) and a.rank != b.rank


def joined(
    ctx: OpContext, a: ValueType, b: ValueType, kept: Collection[str] = ()
) -> ValueType:
    """The type of what is an ``a`` or a ``b``: where sizes differ, a fresh symbol.

    Symbols of ``a`` in ``kept`` are fresh already and stand for any size.
    """
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        _want_elements(ctx, a, b)
        if a.rank != b.rank:
            raise ctx.unsupported(
                f"gives {a} or {b}, so that only a run knows the number of axes",
                "give fixed input_shapes, or let both have as many axes",
            )
        sizes = zip(a.shape, b.shape, strict=True)
        return a.with_shape(tuple(_size(ctx, m, n, kept) for m, n in sizes))
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return SequenceType(_element(ctx, a.element, b.element))
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        return OptionalType(_held(ctx, _inside(a), _inside(b)))
    raise ctx.malformed(f"gives {a} or {b}, which no one type holds")


def _size(ctx: OpContext, m: Dim, n: Dim, kept: Collection[str]) -> Dim:
    return m if m == n or str(m) in kept else ctx.fresh(1)[0]


def _want_elements(
    ctx: OpContext, a: TensorType | Unranked, b: TensorType | Unranked
) -> None:
    if a.dtype is not b.dtype:
        raise ctx.malformed(f"gives {a} or {b}; want one element type")


def _element(
    ctx: OpContext, a: TensorType | Unranked, b: TensorType | Unranked
) -> TensorType | Unranked:
    _want_elements(ctx, a, b)
    if isinstance(a, Unranked) or isinstance(b, Unranked) or a.rank != b.rank:
        return Unranked(a.dtype)
    sizes = zip(a.shape, b.shape, strict=True)
    return TensorType(a.dtype, tuple(m if m == n else ANY for m, n in sizes))


def _inside(kind: ValueType) -> TensorType | Unranked | SequenceType:
    return kind.element if isinstance(kind, OptionalType) else kind


def _held(
    ctx: OpContext,
    a: TensorType | Unranked | SequenceType,
    b: TensorType | Unranked | SequenceType,
) -> TensorType | Unranked | SequenceType:
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return SequenceType(_element(ctx, a.element, b.element))
    if isinstance(a, SequenceType) or isinstance(b, SequenceType):
        raise ctx.malformed(f"gives an optional of {a} or of {b}; want one type")
    return _element(ctx, a, b)


def fitted(value: Value, kind: ValueType) -> Value:
    """``value`` as a ``kind``: an optional of it where that is one."""
    if isinstance(kind, OptionalType) and not isinstance(value.kind, OptionalType):
        return Optional.giving((kind,))(value, label=value.node.label)
    return value


def open_shape(ctx: OpContext, element: TensorType | Unranked) -> Shape:
    """The shape of a tensor of a container: fresh symbols for sizes that may differ."""
    if isinstance(element, Unranked):
        raise ctx.unsupported(
            f"takes a tensor out of {element}: only a run knows its number of axes",
            "declare the shape of the tensors that it holds",
        )
    return tuple(
        size if isinstance(size, int) else ctx.fresh(1)[0] for size in element.shape
    )
