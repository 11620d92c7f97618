"""Gradients of scales: whole numbers themselves have none."""

from __future__ import annotations

from edgewise.ops import Dequantize, Expand, Mul, ReduceSum
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar


@gradient(Dequantize)
def dequantize(at: Adjoint) -> Gradients:
    """``dy * (q - zero)``, over all that share a scale."""
    scale = at.input(1)
    if at.op.block:
        raise at.refuse("its scale is trained, and shared by blocks")
    ones = Expand(scale.type.shape)(scalar(1.0, scale))
    steps = at.op(at.x, ones, at.input(2))
    shared = scale.type.rank == 0
    axes = tuple(j for j in range(at.x.type.rank) if shared or j != at.op.axis)
    return None, ReduceSum(axes, keepdims=False)(Mul()(at.dy, steps)), None
