"""Gradients of what is made of a scalar."""

from __future__ import annotations

from edgewise.ops import Fill, ReduceSum
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(Fill)
def fill(at: Adjoint) -> Gradients:
    """The sum over all copies."""
    axes = tuple(range(at.dy.type.rank))
    return (ReduceSum(axes, keepdims=False)(at.dy),)
