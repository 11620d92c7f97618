"""Sizes that only a run knows: computed by the graph itself, then read as symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from edgewise.convert.symbolic import Sizes
from edgewise.dims import Dim, Expr, Shape
from edgewise.errors import UnsupportedOpError
from edgewise.ir.graph import Value
from edgewise.ir.op import Array, Op
from edgewise.ops.bindings import ReadDims
from edgewise.ops.choose import Cast
from edgewise.ops.create import DimValue
from edgewise.ops.index import Gather
from edgewise.ops.shape import Concat, Reshape
from edgewise.types import DType

MOST = 1024  # numbers that say sizes or axes, where a run makes them


class Emitter(Protocol):
    """Makes nodes for one operator of the model; ``OpContext`` is one."""

    @property
    def known_sizes(self) -> Sizes: ...  # noqa: D102 - an attribute

    def emit(self, op: Op, *inputs: Value | None) -> Value:
        """The first output of a core op."""

    def constant(self, array: Array) -> Value:
        """A constant."""

    def fresh(self, count: int) -> Shape:
        """New symbols."""

    def unsupported(self, reason: str, fix: str) -> UnsupportedOpError:
        """The error for what edgewise cannot do."""


def read(ctx: Emitter, vector: Value, given: Sequence[Dim | None] | None) -> Shape:
    """The elements of an integer vector, or a scalar, as sizes.

    Elements that neither ``given`` nor the graph tells become symbols, which the run
    binds to what it finds there.
    """
    elements = list(ctx.known_sizes.elements(vector) or open_elements(ctx, vector))
    for index, size in enumerate(given or ()):
        elements[index] = elements[index] if size is None else size
    unknown = [index for index, size in enumerate(elements) if size is None]
    if unknown:
        picked = integer(ctx, vector)
        if len(unknown) < len(elements):
            picked = ctx.emit(Gather(0), picked, ctx.constant(np.array(unknown)))
        symbols = ctx.fresh(len(unknown))
        ctx.emit(ReadDims(tuple(map(str, symbols))), picked)
        for index, size in zip(unknown, symbols, strict=True):
            elements[index] = size
    sizes = tuple(size for size in elements if size is not None)
    if given is None:
        ctx.known_sizes.note(vector, sizes)
    return sizes


def open_elements(ctx: Emitter, vector: Value) -> list[None]:
    """As many unknown elements as the vector has."""
    count = vector.type.elements
    if isinstance(count, Expr) or vector.type.rank > 1 or count > MOST:
        raise ctx.unsupported(
            f"computes with the shape {vector.type}, whose length only a run knows",
            "give fixed input_shapes, or fix the number of axes before export",
        )
    return [None] * count


def integer(ctx: Emitter, value: Value) -> Value:
    """``value`` as i64."""
    if value.type.dtype is DType.I64:
        return value
    return ctx.emit(Cast(DType.I64.value), value)


def vector(ctx: Emitter, items: Sequence[Dim | Value]) -> Value:
    """Sizes and scalars as one i64 vector."""
    sizes = [item for item in items if not isinstance(item, Value)]
    if len(sizes) == len(items):
        return dims(ctx, sizes)
    parts = [
        ctx.emit(Reshape((1,)), integer(ctx, item))
        if isinstance(item, Value)
        else dims(ctx, [item])
        for item in items
    ]
    return ctx.emit(Concat(0), *parts)


def dims(ctx: Emitter, sizes: Sequence[Dim]) -> Value:
    """Sizes as an i64 vector; a constant where all are numbers."""
    if any(isinstance(size, Expr) for size in sizes):
        return ctx.emit(DimValue(tuple(sizes), False))
    return ctx.constant(np.array(sizes, np.int64))


def scalar(ctx: Emitter, value: Value) -> Value:
    """One number without axes: some exporters give it one."""
    if value.type.rank == 0:
        return value
    return ctx.emit(Reshape(()), value)
