"""Gradients of what chooses among values or changes their type."""

from __future__ import annotations

from edgewise.ops import ActivationGrad, Cast, Clip, Where
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import sum_to, zeros


@gradient(Where)
def where(at: Adjoint) -> Gradients:
    """To the one that was taken; none to the condition."""
    chosen, nothing = at.input(0), zeros(at.dy)
    a, b = Where()(chosen, at.dy, nothing), Where()(chosen, nothing, at.dy)
    first = sum_to(a, at.input(1)) if at.wanted[1] else None
    return None, first, sum_to(b, at.input(2)) if at.wanted[2] else None


@gradient(Cast)
def cast(at: Adjoint) -> Gradients:
    """Back to the type that it came from."""
    return (Cast(at.x.type.dtype.value)(at.dy),)


@gradient(Clip)
def clip(at: Adjoint) -> Gradients:
    """As it is within the bounds; told by the result, so its input need not be kept."""
    return (ActivationGrad("clip", at.op.low, at.op.high)(at.dy, at.y),)
