"""Activations that exporters write out as formulas, found again."""

from __future__ import annotations

import math

from edgewise.ir.graph import Value
from edgewise.ir.pattern import Pattern, Term, a, scalar
from edgewise.ops.activation import (
    Gelu,
    HardSigmoid,
    HardSwish,
    Mish,
    Relu,
    Sigmoid,
    Silu,
    Softplus,
    Tanh,
)
from edgewise.ops.binary import Add, Div, Maximum, Minimum, Mul, Pow
from edgewise.ops.choose import Clip
from edgewise.ops.unary import Erf, Exp, Log, Neg
from edgewise.passes.rewrite import rule

_SQRT2 = math.sqrt(2.0)
_TANH_SCALE = math.sqrt(2.0 / math.pi)
_CUBE = 0.044715  # the tanh form of Hendrycks and Gimpel, 2016


def _halved(x: Term, other: Pattern) -> tuple[Pattern, ...]:
    """``0.5 * x * other`` in the orders that exporters write."""
    return (
        a(Mul, a(Mul, x, other), 0.5),
        a(Mul, a(Mul, x, 0.5), other),
        a(Mul, a(Mul, other, 0.5), x),
        a(Div, a(Mul, x, other), 2.0),
    )


_ERF = (
    a(Add, a(Erf, a(Div, "x", _SQRT2)), 1.0),
    a(Add, a(Erf, a(Mul, "x", 1.0 / _SQRT2)), 1.0),
)


@rule(*(pattern for erf in _ERF for pattern in _halved("x", erf)))
def gelu(x: Value) -> Value:
    """``x * (1 + erf(x / sqrt(2))) / 2``."""
    return Gelu(False)(x)


_CUBES = (
    a(Pow, "x", 3.0),
    a(Mul, "x", a(Mul, "x", "x")),
    a(Mul, "x", a(Pow, "x", 2.0)),
)
_INNER = (
    *(a(Add, "x", a(Mul, cube, _CUBE)) for cube in _CUBES),
    a(Add, "x", a(Mul, a(Mul, "x", _CUBE), a(Mul, "x", "x"))),
    a(Mul, "x", a(Add, a(Mul, a(Mul, "x", "x"), _CUBE), 1.0)),
)
_TANH = tuple(a(Add, a(Tanh, a(Mul, inner, _TANH_SCALE)), 1.0) for inner in _INNER)


@rule(*(pattern for tanh in _TANH for pattern in _halved("x", tanh)))
def gelu_tanh(x: Value) -> Value:
    """``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2``."""
    return Gelu(True)(x)


@rule(a(Mul, "x", a(Sigmoid, "x")), a(Div, "x", a(Add, a(Exp, a(Neg, "x")), 1.0)))
def silu(x: Value) -> Value:
    """``x * sigmoid(x)``."""
    return Silu()(x)


@rule(
    a(Div, a(Clip, a(Add, "x", 3.0), name="six"), 6.0),
    a(Mul, a(Clip, a(Add, "x", 3.0), name="six"), 1.0 / 6.0),
)
def hard_sigmoid(x: Value, six: Value) -> Value | None:
    """``clip(x + 3, 0, 6) / 6``."""
    return HardSigmoid(1.0 / 6.0, 0.5)(x) if _clips(six, 0.0, 6.0) else None


@rule(a(Mul, "x", a(HardSigmoid, "x", name="gate")))
def hard_swish(x: Value, gate: Value) -> Value | None:
    """``x * hard_sigmoid(x)`` with a slope of a sixth."""
    op = gate.op
    if not isinstance(op, HardSigmoid):
        return None
    sixth = math.isclose(op.alpha, 1.0 / 6.0, rel_tol=1e-5)
    return HardSwish()(x) if sixth and op.beta == 0.5 else None


@rule(
    a(Div, a(Mul, "x", a(Clip, a(Add, "x", 3.0), name="six")), 6.0),
    a(Mul, a(Mul, "x", a(Clip, a(Add, "x", 3.0), name="six")), 1.0 / 6.0),
)
def hard_swish_divided_last(x: Value, six: Value) -> Value | None:
    """``x * clip(x + 3, 0, 6) / 6``."""
    return HardSwish()(x) if _clips(six, 0.0, 6.0) else None


def _clips(value: Value, low: float, high: float) -> bool:
    op = value.op
    return isinstance(op, Clip) and (op.low, op.high) == (low, high)


@rule(a(Mul, "x", a(Tanh, a(Softplus, "x"))))
def mish(x: Value) -> Value:
    """``x * tanh(softplus(x))``."""
    return Mish()(x)


@rule(a(Log, a(Add, a(Exp, "x"), 1.0)))
def softplus(x: Value) -> Value:
    """``log(1 + exp(x))``, which overflows as it is written."""
    return Softplus()(x)


@rule(a(Minimum, a(Maximum, "x", "low"), "high"))
def clip_of_bounds(x: Value, low: Value, high: Value) -> Value | None:
    """``min(max(x, low), high)``; where bounds cross, the upper one wins."""
    bottom, top = scalar(low), scalar(high)
    if bottom is None or top is None or not x.type.dtype.is_float:
        return None
    return Clip(min(bottom, top), top)(x)


@rule(a(Maximum, a(Minimum, "x", "high"), "low"))
def clip_of_bounds_upper_first(x: Value, low: Value, high: Value) -> Value | None:
    """``max(min(x, high), low)``; where bounds cross, the lower one wins."""
    bottom, top = scalar(low), scalar(high)
    if bottom is None or top is None or not x.type.dtype.is_float:
        return None
    return Clip(bottom, max(bottom, top))(x)


@rule(a(Minimum, a(Relu, "x"), "high"))
def clip_of_relu_bound(x: Value, high: Value) -> Value | None:
    """``min(relu(x), high)``."""
    top = scalar(high)
    if top is None or top < 0 or not x.type.dtype.is_float:
        return None
    return Clip(0.0, top)(x)


@rule(a(Maximum, "x", 0.0))
def relu(x: Value) -> Value | None:
    """``max(x, 0)``."""
    return Relu()(x) if x.type.dtype.is_float else None


RULES = (
    gelu,
    gelu_tanh,
    silu,
    hard_swish_divided_last,
    hard_sigmoid,
    hard_swish,
    mish,
    softplus,
    clip_of_bounds,
    clip_of_bounds_upper_first,
    clip_of_relu_bound,
    relu,
)
