"""What the inputs of Resize say: sizes, scales, and the region of interest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.run_time import dims
from edgewise.dims import Dim, Shape
from edgewise.ir.graph import Value
from edgewise.ir.op import Array
from edgewise.ops.binary import Add, Div, Mul
from edgewise.ops.choose import Cast
from edgewise.ops.index import Gather
from edgewise.ops.reduce import ReduceMax, ReduceMin
from edgewise.ops.scatter import ScatterElements
from edgewise.ops.shape import Concat, Expand
from edgewise.ops.unary import Floor
from edgewise.types import DType


class Target(NamedTuple):
    """What becomes of the axes of a tensor.

    Attributes:
        sizes: Their new sizes.
        scales: New elements for each old one, an entry an axis; ``None``: the quotients
            of the sizes.
        factors: The same, as far as it is known now.
    """

    sizes: Shape
    scales: Value | None
    factors: tuple[float | None, ...]


def known(ctx: OpContext, value: Value) -> Array | None:
    """A value read now: a constant, or a stored tensor in its place."""
    array = ctx.known_sizes.known(value)
    if array is None or array.dtype == object:
        array = ctx.world.weights.initial(value)
    return array


def chosen(ctx: OpContext, axes: Sequence[int] | None) -> tuple[int, ...]:
    """The axes that the inputs speak of."""
    rank = ctx[0].type.rank
    if axes is None:
        return tuple(range(rank))
    return tuple(ctx.normal(int(axis), rank) for axis in axes)


def scaled(ctx: OpContext, scales: Value, axes: Sequence[int] | None = None) -> Target:
    """The target that a vector of scales sets."""
    shape, picked = ctx[0].type.shape, chosen(ctx, axes)
    if scales.type.shape != (len(picked),):
        raise ctx.malformed(f"its scales are {scales.type}; want {len(picked)} numbers")
    given = known(ctx, scales)
    factors: list[float | None] = [1.0] * len(shape)
    for place, axis in enumerate(picked):
        factors[axis] = None if given is None else float(given[place])
    if any(factor is not None and not 0 < factor < np.inf for factor in factors):
        raise ctx.malformed(f"its scales are {factors}; want positive ones")
    whole = _over(ctx, scales, picked, 1.0)
    sizes = [_product(*pair) for pair in zip(shape, factors, strict=True)]
    if None in sizes:
        lengths = ctx.emit(Cast(whole.type.dtype.value), dims(ctx, shape))
        product = ctx.emit(Floor(), ctx.emit(Mul(), lengths, whole))
        vector = ctx.emit(Cast(DType.I64.value), product)
        return Target(ctx.read(vector, sizes), whole, tuple(factors))
    found = tuple(size for size in sizes if size is not None)
    return Target(found, whole, tuple(factors))


def _product(size: Dim, factor: float | None) -> Dim | None:
    if factor is None:
        return None
    if factor.is_integer():
        return size * int(factor)
    # In single precision, as the scales are given.
    return int(np.floor(np.float32(factor) * size)) if isinstance(size, int) else None


def sized(ctx: OpContext, axes: Sequence[int] | None, policy: str) -> Target:
    """The target that the input of sizes sets."""
    shape, picked = ctx[0].type.shape, chosen(ctx, axes)
    ctx.pin(3, len(picked))
    sizes = ctx.optional(3)
    if sizes is None or sizes.type.shape != (len(picked),):
        raise ctx.malformed(f"its sizes do not fit {ctx[0].type}")
    if policy != "stretch":
        return _kept(ctx, sizes, picked, policy)
    found = list(shape)
    for axis, size in zip(picked, ctx.read(sizes), strict=True):
        found[axis] = size
    pairs = zip(shape, found, strict=True)
    return Target(tuple(found), None, tuple(_quotient(*pair) for pair in pairs))


def _quotient(before: Dim, after: Dim) -> float | None:
    if before == after:
        return 1.0
    if before == 0:
        return None
    if isinstance(before, int) and isinstance(after, int):
        return after / before
    factor = after // before
    whole = isinstance(factor, int) and factor * before == after
    return float(factor) if isinstance(factor, int) and whole else None


def _kept(ctx: OpContext, sizes: Value, picked: tuple[int, ...], policy: str) -> Target:
    """One scale for all axes: the least or the largest that the sizes give."""
    reduce = {"not_larger": ReduceMin, "not_smaller": ReduceMax}.get(policy)
    if reduce is None:
        raise ctx.malformed(f"keep_aspect_ratio_policy={policy!r}")
    shape = ctx[0].type.shape
    lengths = dims(ctx, [shape[axis] for axis in picked])
    wanted, given = (ctx.emit(Cast(DType.F64.value), v) for v in (sizes, lengths))
    scale = ctx.emit(reduce((0,), True), ctx.emit(Div(), wanted, given))
    half = ctx.like(0.5, scale)
    rounded = ctx.emit(Floor(), ctx.emit(Add(), ctx.emit(Mul(), given, scale), half))
    new = list(shape)
    vector = ctx.emit(Cast(DType.I64.value), rounded)
    for axis, size in zip(picked, ctx.read(vector), strict=True):
        new[axis] = size
    scales = _over(ctx, ctx.emit(Expand((len(picked),)), scale), picked, 1.0)
    found = known(ctx, scales)
    factors = (None,) * len(shape) if found is None else tuple(found.tolist())
    return Target(tuple(new), scales, factors)


def region(ctx: OpContext, axes: Sequence[int] | None) -> Value:
    """Where the region of interest begins on every axis, then where it ends."""
    picked = chosen(ctx, axes)
    ctx.pin(1, 2 * len(picked))
    roi = ctx[1]
    if roi.type.shape != (2 * len(picked),):
        raise ctx.malformed(f"its roi is {roi.type}; want {2 * len(picked)} numbers")
    count = len(picked)
    begins, ends = (
        _over(ctx, ctx.emit(Gather(0), roi, ctx.constant(index)), picked, default)
        for index, default in (
            (np.arange(count), 0.0),
            (np.arange(count, 2 * count), 1.0),
        )
    )
    return ctx.emit(Concat(0), begins, ends)


def _over(
    ctx: OpContext, values: Value, picked: tuple[int, ...], default: float
) -> Value:
    """``values`` at the picked axes, ``default`` at the others."""
    rank = ctx[0].type.rank
    if picked == tuple(range(rank)):
        return values
    whole = ctx.constant(np.full(rank, default, values.type.dtype.numpy))
    places = ctx.constant(np.asarray(picked, np.int64))
    return ctx.emit(ScatterElements(0, "none"), whole, places, values)
