"""Gradients of normalisations of images."""

from __future__ import annotations

from edgewise.dims import floordiv, product
from edgewise.ir.graph import Value
from edgewise.ops import (
    Add,
    Concat,
    Expand,
    GroupNorm,
    InstanceNorm,
    Lrn,
    Mul,
    Pow,
    Reshape,
    Slice,
    Sub,
)
from edgewise_trainer.autodiff.norm import normalised, through
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, sum_to


@gradient(InstanceNorm, GroupNorm)
def per_image(at: Adjoint) -> Gradients:
    """That of a layer norm over the places of one image and group of channels."""
    scale, shift, shape = at.input(1), at.input(2), at.x.type.shape
    count = at.op.parts or shape[-1]
    # Without groups there may be no channels at all.
    each = floordiv(shape[-1], at.op.parts) if at.op.parts else 1
    places = product(shape[1:-1])
    grouped, axes = (shape[0], places, count, each), (1, 3)
    normal, inverse = normalised(Reshape(grouped)(at.x), axes, at.op.eps)
    grad = Reshape(grouped)(Mul()(at.dy, scale))
    back = Reshape(shape)(through(grad, normal, inverse, axes))
    weighted = Mul()(at.dy, Reshape(shape)(normal))
    return back, sum_to(weighted, scale), sum_to(at.dy, shift)


@gradient(Lrn)
def lrn(at: Adjoint) -> Gradients:
    """``g * s ** -b - 2 a b / n * x * near(g * x * s ** (-b - 1))``."""
    op, x = at.op, at.x
    before = (op.size - 1) // 2
    squares = _near(Mul()(x, x), before, op.size)
    share = op.alpha / op.size
    scale = Add()(Mul()(squares, scalar(share, x)), scalar(op.bias, x))
    plain = Mul()(at.dy, Pow()(scale, scalar(-op.beta, x)))
    inner = Mul()(Mul()(at.dy, x), Pow()(scale, scalar(-op.beta - 1.0, x)))
    # Who is near in one direction is near in the other.
    spread = _near(inner, op.size - 1 - before, op.size)
    factor = scalar(2.0 * share * op.beta, x)
    return (Sub()(plain, Mul()(Mul()(x, factor), spread)),)


def _near(value: Value, before: int, size: int) -> Value:
    """Sums over ``size`` channels, from ``before`` ahead of each."""
    shape = value.type.shape
    channels, rank = shape[-1], len(shape)

    def zeros(count: int) -> list[Value]:
        wide = (*shape[:-1], count)
        return [Expand(wide)(scalar(0.0, value))] if count else []

    padded = Concat(rank - 1)(*zeros(before), value, *zeros(size - 1 - before))
    starts, steps = (0,) * (rank - 1), (1,) * rank
    total = None
    for j in range(size):
        part = Slice((*starts, j), (*shape[:-1], channels), steps)(padded)
        total = part if total is None else Add()(total, part)
    return total if total is not None else value
