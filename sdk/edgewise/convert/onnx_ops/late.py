"""Shapes that only a run knows: computed in the graph as ONNX resolves them."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.run_time import scalar
from edgewise.convert.symbolic_rules import at_least
from edgewise.convert.vectors import Vector
from edgewise.dims import Dim, Shape
from edgewise.ir.graph import Value
from edgewise.ops.expect import Expect
from edgewise.ops.shape import Reshape

REFUSED = -2  # a size that ends the run, in place of one that makes no sense


def reshape_target(ctx: OpContext, keep_zero: bool) -> Shape:
    """The shape in input 1; 0 copies a size and -1 takes what is left."""
    x, given = ctx[0].type, Vector.input(ctx, 1)
    own: list[Dim] = [*x.shape, *(REFUSED,) * given.count][: given.count]
    copied = given
    if not keep_zero:
        copied = given.equals(0).where(Vector.of(ctx, tuple(own)), given)
    is_open = given.equals(-1)
    rest = is_open.where(1, copied).product()
    left = Vector.of(ctx, (x.elements,)).quotient(rest.at_least(1))
    left = rest.equals(0).where(REFUSED, left)
    # More than one size left open has no meaning either.
    left = Vector.of(ctx, (1,)).below(is_open.counted().total()).where(REFUSED, left)
    known: list[Dim | None] = [
        None if size is None or size == -1 else size for size in given.known
    ]
    if not keep_zero:
        known = [own[i] if size == 0 else size for i, size in enumerate(known)]
    return is_open.where(left, copied).read(known)


def expand_target(ctx: OpContext) -> Shape:
    """The shape that the input and the one in input 1 have together."""
    shape, given = ctx[0].type.shape, Vector.input(ctx, 1)
    rank = max(len(shape), given.count)
    own: Shape = (*(1,) * (rank - len(shape)), *shape)
    if given.count < rank:
        given = Vector.of(ctx, (1,) * (rank - given.count)).followed_by(given)
    target = given.equals(1).where(Vector.of(ctx, own), given)
    pairs = zip(own, given.known, strict=True)
    return target.read([_together(mine, size) for mine, size in pairs])


def _together(mine: Dim, given: Dim | None) -> Dim | None:
    if isinstance(mine, int) and mine != 1:
        return mine  # the other one is equal or 1
    if given == 1:
        return mine
    return given if mine == 1 or isinstance(given, int) else None


def _marks(ctx: OpContext, axes: Vector, rank: int) -> Vector:
    """1 for every axis of ``rank`` that ``axes`` holds, else 0."""
    return Vector.of(ctx, (0,) * rank).put(axes.from_front(rank), 1)


def squeezed(ctx: OpContext) -> Value:
    """The input without the axes in input 1, which must have size 1."""
    x, axes = ctx[0], Vector.input(ctx, 1)
    rank = x.type.rank
    if axes.count >= rank:
        return ctx.emit(Reshape(()), x)
    every = Vector.of(ctx, tuple(range(rank)))
    order = (_marks(ctx, axes, rank) * rank + every).order()
    kept = order.take(Vector.of(ctx, tuple(range(rank - axes.count))))
    return ctx.emit(Reshape(Vector.of(ctx, x.type.shape).take(kept).read()), x)


def without_ones(ctx: OpContext) -> Value:
    """The input without all axes of size 1: open sizes are taken to be none.

    The number of axes that are left must be known now, so a run in which an open size
    is 1 after all ends with an error.
    """
    shape = ctx[0].type.shape
    kept = tuple(size for size in shape if size != 1)
    y = ctx.emit(Reshape(kept), ctx[0])
    unsure = tuple(size for size in kept if not at_least(size, 2) and size != 0)
    if not unsure:
        return y
    ones = Vector.of(ctx, unsure).equals(1).counted().total()
    names = ", ".join(map(str, unsure))
    claim = f"Squeeze {ctx.name!r}, which has no axes, meets no 1 among [{names}]"
    ctx.world.assumed.claim(claim)
    return ctx.emit(Expect(True, ctx.name, claim), y, scalar(ctx, ones.equals(0).value))


def unsqueezed(ctx: OpContext) -> Value:
    """The input with the axes in input 1 added."""
    x, axes = ctx[0], Vector.input(ctx, 1)
    rank = x.type.rank + axes.count
    if not x.type.rank:
        return ctx.emit(Reshape((1,) * rank), x)
    added = _marks(ctx, axes, rank).equals(1)
    # The size at an axis is that of the axis with as many old ones before it.
    before = added.where(0, 1).running() - 1
    inside = before.at_least(0).at_most(x.type.rank - 1)
    sizes = added.where(1, Vector.of(ctx, x.type.shape).take(inside))
    return ctx.emit(Reshape(sizes.read()), x)
