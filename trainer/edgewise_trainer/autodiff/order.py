"""Gradients of running sums and products, and of the largest elements."""

from __future__ import annotations

from edgewise.ops import Cumprod, CumprodGrad, Cumsum, ScatterElements, TopK
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import zeros


@gradient(Cumsum)
def cumsum(at: Adjoint) -> Gradients:
    """A running sum from the other end."""
    return (at.op.replace(reverse=not at.op.reverse)(at.dy),)


@gradient(Cumprod)
def cumprod(at: Adjoint) -> Gradients:
    """What all other factors come to, for each product that one is in."""
    return (CumprodGrad(*at.op.values)(at.x, at.dy),)


@gradient(TopK)
def top_k(at: Adjoint) -> Gradients:
    """To the elements that were taken."""
    return (ScatterElements(at.op.axis, "add")(zeros(at.x), at.outputs[1], at.dy),)
