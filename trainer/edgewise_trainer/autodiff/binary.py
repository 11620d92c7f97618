"""Gradients of arithmetic on two values, broadcast as numpy does."""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ops import (
    Add,
    Div,
    Equal,
    Greater,
    Less,
    Log,
    Maximum,
    Minimum,
    Mod,
    Mul,
    Neg,
    Pow,
    Sub,
    Where,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, sum_to, zeros


@gradient(Add)
def add(at: Adjoint) -> Gradients:
    """Both as they are."""
    return _summed(at, at.dy, at.dy)


@gradient(Sub)
def sub(at: Adjoint) -> Gradients:
    """The second negated."""
    return _summed(at, at.dy, Neg()(at.dy))


@gradient(Mul)
def mul(at: Adjoint) -> Gradients:
    """Each times the other."""
    a, b = at.input(0), at.input(1)
    return _summed(at, Mul()(at.dy, b), Mul()(at.dy, a))


@gradient(Div)
def div(at: Adjoint) -> Gradients:
    """``1 / b`` and ``-y / b``."""
    b = at.input(1)
    share = Div()(at.dy, b)
    return _summed(at, share, Neg()(Mul()(share, at.y)))


@gradient(Pow)
def power(at: Adjoint) -> Gradients:
    """``b * a ** (b - 1)`` and ``y * log a``, which is 0 where the base is 0."""
    a, b = at.input(0), at.input(1)
    base = Mul()(b, Pow()(a, Sub()(b, scalar(1.0, b))))
    flat = Equal()(b, scalar(0.0, b))
    base = Where()(flat, scalar(0.0, a), base)
    positive = Greater()(a, scalar(0.0, a))
    logarithm = Log()(Where()(positive, a, scalar(1.0, a)))
    return _summed(at, Mul()(at.dy, base), Mul()(at.dy, Mul()(at.y, logarithm)))


@gradient(Maximum)
def maximum(at: Adjoint) -> Gradients:
    """To the larger; half to each where they are equal, as PyTorch has it."""
    a, b = at.input(0), at.input(1)
    return _shared(at, Greater()(a, b), Less()(a, b))


@gradient(Minimum)
def minimum(at: Adjoint) -> Gradients:
    """To the smaller; half to each where they are equal, as PyTorch has it."""
    a, b = at.input(0), at.input(1)
    return _shared(at, Less()(a, b), Greater()(a, b))


def _shared(at: Adjoint, first: Value, second: Value) -> Gradients:
    half = Mul()(at.dy, scalar(0.5, at.dy))
    nothing = zeros(at.dy)
    a = Where()(first, at.dy, Where()(second, nothing, half))
    b = Where()(second, at.dy, Where()(first, nothing, half))
    return _summed(at, a, b)


def _summed(at: Adjoint, a: Value, b: Value) -> Gradients:
    first = sum_to(a, at.input(0)) if at.wanted[0] else None
    return first, sum_to(b, at.input(1)) if at.wanted[1] else None


@gradient(Mod)
def mod(at: Adjoint) -> Gradients:
    """To a as it is; to b as often as it was taken off, which jumps now and then."""
    a, b = at.input(0), at.input(1)
    times = Div()(Sub()(a, at.y), b)
    return _summed(at, at.dy, Neg()(Mul()(at.dy, times)))
