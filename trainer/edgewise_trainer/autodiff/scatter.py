"""Gradients of what stores elements at places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgewise.dims import product
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Arange,
    Equal,
    Expand,
    GatherElements,
    GatherNd,
    Reshape,
    ScatterElements,
    ScatterNd,
    Where,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import zeros

Move = Callable[..., Value]
_ZERO = np.zeros((), np.int64)


@gradient(ScatterElements)
def scatter_elements(at: Adjoint) -> Gradients:
    """To x what was not replaced; to an update what lies at its place."""
    axis = at.op.axis
    return _stored(at, ScatterElements(axis), GatherElements(axis))


@gradient(ScatterNd)
def scatter_nd(at: Adjoint) -> Gradients:
    """As for elements; of slices."""
    return _stored(at, ScatterNd(), GatherNd())


def _stored(at: Adjoint, scatter: Move, gather: Move) -> Gradients:
    indices, given = at.input(1), at.input(2)
    updates = gather(at.dy, indices)
    if at.op.reduction == "add":
        return at.dy, None, updates
    if at.op.reduction != "none":
        raise at.refuse(f"it joins by {at.op.reduction!r}, not by 'add' or 'none'")
    kept = scatter(at.dy, indices, zeros(given))
    # Of several updates of one place the last stays, and has the gradient.
    numbers = _numbered(given)
    base = Expand(at.x.type.shape)(constant(_ZERO))
    stayed = Equal()(gather(scatter(base, indices, numbers), indices), numbers)
    return kept, None, Where()(stayed, updates, zeros(updates))


def _numbered(like: Value) -> Value:
    """Every element's place in order, from 0 on."""
    shape = like.type.shape
    return Reshape(shape)(Arange(0, product(shape))())
