"""The gradient of the statistics of a batch."""

from __future__ import annotations

from edgewise.ops import Add, BatchStatistics, Div, Mul, Neg, ScaleShift
from edgewise_trainer.autodiff.reduce import count
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, zeros


@gradient(BatchStatistics)
def batch_statistics(at: Adjoint) -> Gradients:
    """``(dmean + 2 dvar (x - mean)) / n``: a scale and a shift of each channel."""
    mean = at.outputs[0]
    dmean, dvar = (zeros(mean) if grad is None else grad for grad in at.grads)
    axes = tuple(j for j in range(at.x.type.rank) if j != at.op.axis)
    number = count(at.x, axes)
    scale = Div()(Mul()(dvar, scalar(2.0, dvar)), number)
    shift = Add()(Div()(dmean, number), Neg()(Mul()(scale, mean)))
    return (ScaleShift(at.op.axis)(at.x, scale, shift),)
