"""The gradient of determinants."""

from __future__ import annotations

from edgewise.ops import Det, DetGrad
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(Det)
def det(at: Adjoint) -> Gradients:
    """The cofactors."""
    return (DetGrad()(at.x, at.dy),)
