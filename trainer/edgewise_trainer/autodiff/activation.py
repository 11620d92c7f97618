"""Gradients of activations."""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ops import (
    Abs,
    ActivationGrad,
    Add,
    Celu,
    Div,
    Elu,
    Exp,
    Gelu,
    Greater,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Less,
    Minimum,
    Mish,
    Mul,
    Prelu,
    Relu,
    Selu,
    Sigmoid,
    Silu,
    Softplus,
    Softsign,
    Sub,
    Tanh,
    ThresholdedRelu,
    Where,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, sum_to, zeros


@gradient(Relu)
def relu(at: Adjoint) -> Gradients:
    """Where it is positive: its result tells, so its input need not be kept."""
    return (ActivationGrad("relu")(at.dy, at.y),)


@gradient(Sigmoid, Silu, HardSwish, Softplus, Mish)
def named(at: Adjoint) -> Gradients:
    """Those that epilogues have under the same name."""
    return (ActivationGrad(at.op.name)(at.dy, at.x),)


@gradient(Tanh)
def tanh(at: Adjoint) -> Gradients:
    """``1 - y ** 2``: its result tells, so its input need not be kept."""
    slope = Sub()(scalar(1.0, at.y), Mul()(at.y, at.y))
    return (Mul()(at.dy, slope),)


@gradient(Gelu)
def gelu(at: Adjoint) -> Gradients:
    """The exact one, or its approximation."""
    name = "gelu_tanh" if at.op.approximate else "gelu"
    return (ActivationGrad(name)(at.dy, at.x),)


@gradient(LeakyRelu)
def leaky_relu(at: Adjoint) -> Gradients:
    """1 or the slope."""
    return (ActivationGrad("leaky_relu", at.op.slope)(at.dy, at.x),)


@gradient(Elu)
def elu(at: Adjoint) -> Gradients:
    """1 or ``alpha * exp(x)``."""
    return (ActivationGrad("elu", at.op.alpha)(at.dy, at.x),)


@gradient(HardSigmoid)
def hard_sigmoid(at: Adjoint) -> Gradients:
    """The slope between the bounds."""
    return (ActivationGrad("hard_sigmoid", at.op.alpha, at.op.beta)(at.dy, at.x),)


@gradient(Selu)
def selu(at: Adjoint) -> Gradients:
    """``gamma`` times that of ``elu``."""
    back = ActivationGrad("elu", at.op.alpha)(at.dy, at.x)
    return (Mul()(back, scalar(at.op.gamma, back)),)


@gradient(Celu)
def celu(at: Adjoint) -> Gradients:
    """1 or ``exp(x / alpha)``."""
    falling = Minimum()(at.x, scalar(0.0, at.x))
    return (Mul()(at.dy, Exp()(Div()(falling, scalar(at.op.alpha, at.x)))),)


@gradient(Softsign)
def softsign(at: Adjoint) -> Gradients:
    """``1 / (1 + |x|) ** 2``."""
    below = Add()(Abs()(at.x), scalar(1.0, at.x))
    return (Div()(at.dy, Mul()(below, below)),)


@gradient(ThresholdedRelu)
def thresholded_relu(at: Adjoint) -> Gradients:
    """Where it is above the threshold."""
    above = Greater()(at.x, scalar(at.op.alpha, at.x))
    return (Where()(above, at.dy, zeros(at.dy)),)


@gradient(Prelu)
def prelu(at: Adjoint) -> Gradients:
    """1 or the slope; to the slope what is negative."""
    slope, below = at.input(1), Less()(at.x, scalar(0.0, at.x))
    x = Where()(below, Mul()(at.dy, slope), at.dy)
    return x, sum_to(_below(at, below), slope) if at.wanted[1] else None


def _below(at: Adjoint, below: Value) -> Value:
    return Where()(below, Mul()(at.dy, at.x), zeros(at.dy))
