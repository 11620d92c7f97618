"""Gradients of pools."""

from __future__ import annotations

from edgewise.ops import AveragePool, AveragePoolGrad, MaxPool, MaxPoolGrad
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(MaxPool)
def max_pool(at: Adjoint) -> Gradients:
    """To the element of each window that won."""
    op = at.op
    back = MaxPoolGrad(op.kernel, op.strides, op.pads, op.dilations)
    return (back(at.x, at.dy),)


@gradient(AveragePool)
def average_pool(at: Adjoint) -> Gradients:
    """An equal part to each element of a window."""
    back = AveragePoolGrad(*at.op.values, sizes=at.x.type.shape[1:3])
    return (back(at.dy),)
