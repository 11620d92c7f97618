"""The gradient of grids of places under affine maps."""

from __future__ import annotations

import numpy as np

from edgewise.dims import product
from edgewise.ir.graph import constant
from edgewise.ops import AffineGrid, Concat, Expand, MatMul, Reshape, Transpose
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar


@gradient(AffineGrid)
def affine_grid(at: Adjoint) -> Gradients:
    """``dy' places``: the map is linear in what it multiplies the places by."""
    axes, count = len(at.op.sizes), product(at.op.sizes)
    unit = np.eye(axes, axes + 1, dtype=at.x.type.dtype.numpy)
    # What the unit maps places to are the places.
    places = Reshape((count, axes))(at.op(constant(unit[None])))
    ones = Expand((count, 1))(scalar(1.0, at.x))
    rows = Reshape((at.x.type.shape[0], count, axes))(at.dy)
    return (MatMul()(Transpose((0, 2, 1))(rows), Concat(1)(places, ones)),)
