"""Gradients of what looks elements up: added where they came from."""

from __future__ import annotations

import numpy as np

from edgewise.dims import Shape
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Arange,
    Cast,
    Concat,
    Expand,
    Gather,
    GatherElements,
    GatherNd,
    Mul,
    OneHot,
    ReduceSum,
    Reshape,
    ScatterElements,
    ScatterNd,
    Sub,
    Transpose,
    Triangle,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import zeros


@gradient(Gather)
def gather(at: Adjoint) -> Gradients:
    """Every slice added to the one that it is a copy of."""
    axis, x, indices = at.op.axis, at.x, at.input(1)
    rank, many = x.type.rank, indices.type.rank
    # Scattering counts places along the first axis, so that axis comes to the front.
    before = tuple(range(axis))
    looked_up = tuple(range(axis, axis + many))
    after = tuple(range(axis + many, axis + many + rank - axis - 1))
    updates = _turned(at.dy, (*looked_up, *before, *after))
    base = (axis, *(j for j in range(rank) if j != axis))
    target = _turned(zeros(x), base)
    places = Reshape((*indices.type.shape, 1))(indices)
    total = ScatterNd("add")(target, places, updates)
    back = tuple(sorted(range(rank), key=lambda j: base[j]))
    return _turned(total, back), None


@gradient(GatherElements)
def gather_elements(at: Adjoint) -> Gradients:
    """Every element added to the one that it is a copy of."""
    total = ScatterElements(at.op.axis, "add")(zeros(at.x), at.input(1), at.dy)
    return total, None


@gradient(GatherNd)
def gather_nd(at: Adjoint) -> Gradients:
    """Every slice added to the one that it is a copy of."""
    indices = at.input(1)
    shape = (*indices.type.shape[:-1], 1)
    # Within batches: the places of the batch are indices, too.
    batch = [_along(axis, shape, indices) for axis in range(at.op.batch_dims)]
    places = Concat(len(shape) - 1)(*batch, indices) if batch else indices
    return ScatterNd("add")(zeros(at.x), places, at.dy), None


def _along(axis: int, shape: Shape, like: Value) -> Value:
    """Places along an axis, of the type of ``like`` and in that shape."""
    ones = tuple(size if j == axis else 1 for j, size in enumerate(shape))
    places = Reshape(ones)(Arange(0, shape[axis])())
    if like.type.dtype is not places.type.dtype:
        places = Cast(like.type.dtype.value)(places)
    return Expand(shape)(places)


@gradient(OneHot)
def one_hot(at: Adjoint) -> Gradients:
    """To the two values: the sums over what is cold, and over what is hot."""
    dtype = at.dy.type.dtype.numpy
    truth = at.op(at.input(0), constant(np.asarray([0, 1], dtype)))
    axes = tuple(range(at.dy.type.rank))
    total, hot = (
        Reshape((1,))(ReduceSum(axes, keepdims=False)(part))
        for part in (at.dy, Mul()(at.dy, truth))
    )
    return None, Concat(0)(Sub()(total, hot), hot)


@gradient(Triangle)
def triangle(at: Adjoint) -> Gradients:
    """The same triangle."""
    return (at.op(at.dy),)


def _turned(value: Value, axes: tuple[int, ...]) -> Value:
    return value if axes == tuple(range(len(axes))) else Transpose(axes)(value)
