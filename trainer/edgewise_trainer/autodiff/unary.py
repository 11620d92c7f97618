"""Gradients of functions of single numbers."""

from __future__ import annotations

import math

from edgewise.ir.graph import Value
from edgewise.ops import (
    Abs,
    Acos,
    Acosh,
    Add,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Div,
    Erf,
    Exp,
    Log,
    Mul,
    Neg,
    Reciprocal,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Sub,
    Tan,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar


@gradient(Neg)
def neg(at: Adjoint) -> Gradients:
    """The other sign."""
    return (Neg()(at.dy),)


@gradient(Abs)
def absolute(at: Adjoint) -> Gradients:
    """The sign of x, 0 at 0."""
    return (Mul()(at.dy, Sign()(at.x)),)


@gradient(Sqrt)
def sqrt(at: Adjoint) -> Gradients:
    """``1 / (2 y)``."""
    return (Div()(at.dy, _times(2.0, at.y)),)


@gradient(Reciprocal)
def reciprocal(at: Adjoint) -> Gradients:
    """``-y ** 2``."""
    return (Neg()(Mul()(at.dy, Mul()(at.y, at.y))),)


@gradient(Exp)
def exp(at: Adjoint) -> Gradients:
    """Itself."""
    return (Mul()(at.dy, at.y),)


@gradient(Log)
def log(at: Adjoint) -> Gradients:
    """``1 / x``."""
    return (Div()(at.dy, at.x),)


@gradient(Sin)
def sin(at: Adjoint) -> Gradients:
    """The cosine."""
    return (Mul()(at.dy, Cos()(at.x)),)


@gradient(Cos)
def cos(at: Adjoint) -> Gradients:
    """Minus the sine."""
    return (Neg()(Mul()(at.dy, Sin()(at.x))),)


@gradient(Tan)
def tan(at: Adjoint) -> Gradients:
    """``1 + y ** 2``."""
    return (Mul()(at.dy, Add()(Mul()(at.y, at.y), scalar(1.0, at.y))),)


@gradient(Asin)
def asin(at: Adjoint) -> Gradients:
    """``1 / sqrt(1 - x ** 2)``."""
    return (Div()(at.dy, Sqrt()(_one_minus_square(at.x))),)


@gradient(Acos)
def acos(at: Adjoint) -> Gradients:
    """``-1 / sqrt(1 - x ** 2)``."""
    return (Neg()(Div()(at.dy, Sqrt()(_one_minus_square(at.x)))),)


@gradient(Atan)
def atan(at: Adjoint) -> Gradients:
    """``1 / (1 + x ** 2)``."""
    return (Div()(at.dy, _square_plus_one(at.x)),)


@gradient(Sinh)
def sinh(at: Adjoint) -> Gradients:
    """The other of the two."""
    return (Mul()(at.dy, Cosh()(at.x)),)


@gradient(Cosh)
def cosh(at: Adjoint) -> Gradients:
    """The other of the two."""
    return (Mul()(at.dy, Sinh()(at.x)),)


@gradient(Asinh)
def asinh(at: Adjoint) -> Gradients:
    """``1 / sqrt(x ** 2 + 1)``."""
    return (Div()(at.dy, Sqrt()(_square_plus_one(at.x))),)


@gradient(Acosh)
def acosh(at: Adjoint) -> Gradients:
    """``1 / sqrt(x ** 2 - 1)``."""
    return (Div()(at.dy, Sqrt()(Neg()(_one_minus_square(at.x)))),)


@gradient(Atanh)
def atanh(at: Adjoint) -> Gradients:
    """``1 / (1 - x ** 2)``."""
    return (Div()(at.dy, _one_minus_square(at.x)),)


@gradient(Erf)
def erf(at: Adjoint) -> Gradients:
    """``2 / sqrt(pi) * exp(-x ** 2)``."""
    bell = Exp()(Neg()(Mul()(at.x, at.x)))
    return (Mul()(at.dy, _times(2 / math.sqrt(math.pi), bell)),)


def _times(factor: float, x: Value) -> Value:
    return Mul()(x, scalar(factor, x))


def _one_minus_square(x: Value) -> Value:
    return Sub()(scalar(1.0, x), Mul()(x, x))


def _square_plus_one(x: Value) -> Value:
    return Add()(Mul()(x, x), scalar(1.0, x))
