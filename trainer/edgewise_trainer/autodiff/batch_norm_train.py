"""The gradient of batch norms in training."""

from __future__ import annotations

from edgewise.ops import ActivationGrad, Add, BatchNormTrainGrad
from edgewise.ops import BatchNormTrain as Norm
from edgewise_trainer.autodiff.epilogue import TOLD_BY_RESULT
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.statistics import from_moments


@gradient(Norm)
def batch_norm_train(at: Adjoint) -> Gradients:
    """Through activation, scale and statistics; a residual's behind the activation."""
    grad, op, residual = at.dy, at.op, at.inputs[3:]
    if residual and residual[0] is not None and op.activation != "none":
        if op.activation not in TOLD_BY_RESULT:
            raise at.refuse(f"it ends in {op.activation} of a sum, which is not kept")
        grad = ActivationGrad(op.activation, op.alpha, op.beta)(grad, at.y)
        op = op.replace(activation="none", alpha=0.0, beta=0.0)
    vectors = at.input(1), at.input(2), *at.outputs[1:]
    x, *more = BatchNormTrainGrad(*op.values).node(grad, at.x, *vectors)
    if at.grads[1] is not None or at.grads[2] is not None:
        last = at.x.type.rank - 1
        x = Add()(x, from_moments(at.x, last, at.outputs[1], at.grads[1:]))
    return (x, *more, grad)[: len(at.inputs)]
