"""A gradient on its way back through an activation: times the derivative, in float32.

Words: dy, x, out, elements, elements a task, activation code, alpha and beta as bits.
"""

from __future__ import annotations

from edgewise.kernels.native import math
from edgewise.kernels.native.abi import OK, as_f32, helper
from edgewise.kernels.native.activation import sigmoid
from edgewise.kernels.native.epilogue import (
    CLIP,
    ELU,
    GELU,
    GELU_TANH,
    HARD_SIGMOID,
    HARD_SWISH,
    LEAKY_RELU,
    NONE,
    RELU,
    SIGMOID,
    SILU,
    SOFTPLUS,
    TANH,
)
from edgewise.kernels.native.memory import load_part, store_part
from edgewise.kernels.native.vector import at_least, at_most, fma, select, splat

LANES = 16
HALF_ROOT, BELL = 0.7978845608028654, 0.3989422804014327  # sqrt(2 / pi), 1 / sqrt(2 pi)
FAR = 40.0  # where e**-v and e**(-v * v / 2) have long been 0 beside 1


@helper
def _hard_sigmoid(v, alpha, beta):
    line = fma(v, alpha, beta)
    zero, one = splat(0.0), splat(1.0)
    return select(line > zero, select(line < one, alpha, zero), zero)


@helper
def _hard_swish(v):
    line = fma(v, splat(1.0 / 3.0), splat(0.5))
    low, high = splat(-3.0), splat(3.0)
    inside = select(v >= high, splat(1.0), line)
    return select(v <= low, splat(0.0), inside)


@helper
def _silu(v):
    y = sigmoid(v)
    return y * fma(v, splat(1.0) - y, splat(1.0))


@helper
def _gelu(v):
    held = at_least(at_most(v, splat(FAR)), splat(-FAR))
    bell = math.exp(splat(-0.5) * held * held)
    below = fma(splat(0.5), math.erf_of_normal(v), splat(0.5))
    return fma(held * splat(BELL), bell, below)


@helper
def _gelu_tanh(v):
    held = at_least(at_most(v, splat(FAR)), splat(-FAR))
    square = held * held
    z = splat(HALF_ROOT) * held * fma(square, splat(0.044715), splat(1.0))
    t = math.tanh(z)
    inner = splat(HALF_ROOT) * fma(square, splat(3 * 0.044715), splat(1.0))
    bend = (splat(1.0) - t * t) * inner
    return splat(0.5) * (splat(1.0) + t + held * bend)


@helper
def _mish(v):
    """``t + v (1 - t t) sigmoid(v)`` with t = n / (n + 2), n = e**v (e**v + 2)."""
    held = at_least(at_most(v, splat(20.0)), splat(-FAR))
    e = math.exp(held)
    n = e * (e + splat(2.0))
    t = n / (n + splat(2.0))
    slope = fma(held * (splat(1.0) - t * t), e / (splat(1.0) + e), t)
    return select(v > splat(20.0), splat(1.0), slope)


@helper
def _smooth(code, v, alpha):
    """Derivatives of those that bend."""
    if code == ELU:
        falling = alpha * math.exp(at_most(v, splat(0.0)))
        return select(v > splat(0.0), splat(1.0), falling)
    if code == SIGMOID:
        y = sigmoid(v)
        return y * (splat(1.0) - y)
    if code == SILU:
        return _silu(v)
    if code == TANH:
        y = math.tanh(v)
        return splat(1.0) - y * y
    if code == GELU:
        return _gelu(v)
    if code == GELU_TANH:
        return _gelu_tanh(v)
    if code == SOFTPLUS:
        return sigmoid(v)
    return _mish(v)


@helper
def derivative(code, v, alpha, beta):
    """The derivative at ``v`` of the activation that has a code."""
    zero, one = splat(0.0), splat(1.0)
    if code == NONE:
        return one
    if code == RELU:
        return select(v > zero, one, zero)
    if code == CLIP:
        return select(v > alpha, select(v < beta, one, zero), zero)
    if code == LEAKY_RELU:
        return select(v > zero, one, alpha)
    if code == HARD_SIGMOID:
        return _hard_sigmoid(v, alpha, beta)
    if code == HARD_SWISH:
        return _hard_swish(v)
    return _smooth(code, v, alpha)


def activation_grad_f32(args, begin, end, worker):
    """A task is a block of elements."""
    size, block, code = args[3], args[4], args[5]
    alpha, beta = splat(as_f32(args[6])), splat(as_f32(args[7]))
    for i in range(begin * block, min(end * block, size), LANES):
        lanes = min(size - i, LANES)
        grad = load_part(args[0] + 4 * i, lanes)
        v = load_part(args[1] + 4 * i, lanes)
        result = grad * derivative(code, v, alpha, beta)
        store_part(args[2] + 4 * i, result, lanes)
    return OK


EXPORTS = {"activation_grad_f32": activation_grad_f32}
