"""The way back through what a product does to its sums.

``y = activation(sum * scale + shift + residual)``.  Activations that are told by their
results (a ReLU, bounds, a leaky ReLU) stay where they are; before others are trained
through, the product gives them up (``edgewise_trainer.form``).
"""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ops import ActivationGrad, Mul
from edgewise_trainer.autodiff.rule import Adjoint, Gradients
from edgewise_trainer.autodiff.shapes import sum_to

TOLD_BY_RESULT = ("none", "relu", "clip", "leaky_relu")


def sums_grad(at: Adjoint) -> tuple[Value, Gradients]:
    """Gradient of the sums, and those of scale, shift and residual as far as given."""
    op = at.op
    if op.activation not in TOLD_BY_RESULT:
        raise at.refuse(f"it ends in {op.activation}, which its result does not tell")
    scale, shift, residual = (*at.inputs[2:], None, None, None)[:3]
    if scale is not None and at.wanted[2]:
        raise at.refuse("its scale is trained within it")
    grad = at.dy
    if op.activation != "none":
        grad = ActivationGrad(op.activation, op.alpha, op.beta)(grad, at.y)
    more = (
        None,
        None if shift is None else sum_to(grad, shift),
        None if residual is None else sum_to(grad, residual),
    )
    if scale is not None:
        grad = Mul()(grad, scale)
    return grad, more[: len(at.inputs) - 2]
