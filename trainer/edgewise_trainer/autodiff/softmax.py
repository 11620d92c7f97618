"""Gradients of the softmax and its logarithm."""

from __future__ import annotations

from edgewise.ops import Exp, LogSoftmax, Mul, ReduceSum, Softmax, Sub
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient


@gradient(Softmax)
def softmax(at: Adjoint) -> Gradients:
    """``y * (dy - sum(y * dy))``."""
    weighted = Mul()(at.y, at.dy)
    total = ReduceSum((at.op.axis,), keepdims=True)(weighted)
    return (Sub()(weighted, Mul()(at.y, total)),)


@gradient(LogSoftmax)
def log_softmax(at: Adjoint) -> Gradients:
    """``dy - exp(y) * sum(dy)``."""
    total = ReduceSum((at.op.axis,), keepdims=True)(at.dy)
    return (Sub()(at.dy, Mul()(Exp()(at.y), total)),)
