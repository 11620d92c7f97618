"""The gradient of the statistics of a batch."""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ops import Add, BatchStatistics, Div, Mul, Neg, ScaleShift
from edgewise_trainer.autodiff.reduce import count
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, zeros


@gradient(BatchStatistics)
def batch_statistics(at: Adjoint) -> Gradients:
    """A scale and a shift of each channel."""
    return (from_moments(at.x, at.op.axis, at.outputs[0], at.grads),)


def from_moments(x: Value, axis: int, mean: Value, grads: Gradients) -> Value:
    """``(dmean + 2 dvar (x - mean)) / n``, of gradients of mean and variance."""
    dmean, dvar = (zeros(mean) if grad is None else grad for grad in grads)
    axes = tuple(j for j in range(x.type.rank) if j != axis)
    number = count(x, axes)
    scale = Div()(Mul()(dvar, scalar(2.0, dvar)), number)
    shift = Add()(Div()(dmean, number), Neg()(Mul()(scale, mean)))
    return ScaleShift(axis)(x, scale, shift)
