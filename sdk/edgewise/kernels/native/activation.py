"""Activations of float32; NaN goes through all of them.  Words as in ``elementwise``.

No formula overflows on its way to a finite result, and each is used where it does not
cancel, so that errors stay within 4 ulp; ``gelu`` alone cancels below zero: its error
is below ``2.1e-7 * |x|``.
"""

from __future__ import annotations

from edgewise.kernels.native import math
from edgewise.kernels.native.abi import helper
from edgewise.kernels.native.elementwise import unary, unary_with
from edgewise.kernels.native.vector import (
    absolute,
    at_least,
    at_most,
    fma,
    select,
    splat,
)

LEAST = -200.0  # where v * e**v has long been 0


@helper
def relu(v):
    """max(v, 0)."""
    return at_least(v, splat(0.0))


@helper
def leaky_relu(v, slope, _):
    """``v`` where it is not negative, else slope * v."""
    return select(v < splat(0.0), slope * v, v)


@helper
def elu(v, alpha, _):
    """``v`` where it is positive, else alpha * (e**v - 1)."""
    return select(v > splat(0.0), v, alpha * math.expm1(at_most(v, splat(0.0))))


@helper
def selu(v, alpha, gamma):
    """Gamma times elu."""
    return gamma * elu(v, alpha, gamma)


@helper
def celu(v, alpha, _):
    """``v`` where it is positive, else alpha * (e**(v / alpha) - 1)."""
    low = alpha * math.expm1(at_most(v / alpha, splat(0.0)))
    return at_least(v, splat(0.0)) + at_most(low, splat(0.0))


@helper
def sigmoid(v):
    """1 / (1 + e**-v), by the half that keeps small results exact."""
    e = math.exp(-absolute(v))
    return select(v < splat(0.0), e, splat(1.0)) / (splat(1.0) + e)


@helper
def hard_sigmoid(v, alpha, beta):
    """The line alpha * v + beta, held to [0, 1]."""
    return at_most(at_least(fma(v, alpha, beta), splat(0.0)), splat(1.0))


@helper
def hard_swish(v):
    """``v * hard_sigmoid(v)`` with slope 1/6 and offset 1/2."""
    return v * hard_sigmoid(v, splat(1.0 / 6.0), splat(0.5))


@helper
def weighted(v, z):
    """``v * sigmoid(z)``, where z goes to minus infinity as v does."""
    e, product = math.exp_and_product(-absolute(z), at_least(v, splat(LEAST)))
    return select(z < splat(0.0), product, v) / (splat(1.0) + e)


@helper
def silu(v):
    """``v * sigmoid(v)``."""
    return weighted(v, v)


@helper
def gelu(v):
    """``v`` times the probability that a normal number is less."""
    half = splat(0.5) * v
    near = fma(half, math.erf_of_normal(v), half)
    return select(v < splat(-math.NORMAL_END), v * splat(0.0), near)


@helper
def gelu_tanh(v):
    """The tanh form of gelu, written as v * sigmoid(2 z): it does not cancel."""
    z = v * fma(
        v * v, splat(2 * 0.044715 * 0.7978845608028654), splat(1.5957691216057308)
    )
    return weighted(v, z)


@helper
def softplus(v):
    """log(1 + e**v)."""
    return at_least(v, splat(0.0)) + math.log1p(math.exp(-absolute(v)))


@helper
def softsign(v):
    """``v / (1 + |v|)``."""
    return v / (splat(1.0) + absolute(v))


@helper
def mish(v):
    """``v * tanh(softplus(v))``: v * n / (n + 2) for n = e**v (e**v + 2)."""
    low = at_most(v, splat(20.0))
    e, product = math.exp_and_product(low, at_least(low, splat(LEAST)))
    ratio = (e + splat(2.0)) / fma(e, e + splat(2.0), splat(2.0))
    return select(v > splat(20.0), v, product * ratio)


@helper
def thresholded_relu(v, alpha, _):
    """``v`` where it is above alpha, else 0."""
    return select(v > alpha, v, splat(0.0))


@helper
def tanh(v):
    """Hyperbolic tangent."""
    return math.tanh(v)


EXPORTS = {
    "relu_f32": unary(relu),
    "leaky_relu_f32": unary_with(leaky_relu),
    "elu_f32": unary_with(elu),
    "selu_f32": unary_with(selu),
    "celu_f32": unary_with(celu),
    "sigmoid_f32": unary(sigmoid),
    "hard_sigmoid_f32": unary_with(hard_sigmoid),
    "hard_swish_f32": unary(hard_swish),
    "silu_f32": unary(silu),
    "tanh_f32": unary(tanh),
    "gelu_f32": unary(gelu),
    "gelu_tanh_f32": unary(gelu_tanh),
    "softplus_f32": unary(softplus),
    "softsign_f32": unary(softsign),
    "mish_f32": unary(mish),
    "thresholded_relu_f32": unary_with(thresholded_relu),
}
