"""Activations of sums that become bytes: in fewer steps than results in float32 want.

Errors are below ``1e-6`` of the result or, for ``tanh``, of 1: far less than a byte's
step.
"""

from __future__ import annotations

from edgewise.kernels.native import math
from edgewise.kernels.native.abi import helper
from edgewise.kernels.native.epilogue import GELU_TANH, SIGMOID, SILU, TANH, activate
from edgewise.kernels.native.vector import at_least, fma, splat

# What gelu's tanh form takes the sigmoid of: ``x * (GELU_1 + GELU_3 * x * x)``.
GELU_1, GELU_3 = 1.5957691216057308, 2 * 0.044715 * 0.7978845608028654
LEAST = -87.0  # where a sigmoid is nothing to a byte, and ``e**-LEAST`` not too large


@helper
def _weighted(v, z):
    """``v / (1 + e**-z)`` for z from ``LEAST`` on."""
    p, factor = math.exp2_parts(at_least(z * splat(-math.LOG2_E), splat(-125.5)))
    return v / fma(p, factor, splat(1.0))


@helper
def activate_bytes(code, x, alpha, beta):
    """The activation that has a code beyond those of a range."""
    if code == SILU:
        v = at_least(x, splat(LEAST))
        return _weighted(v, v)
    if code == SIGMOID:
        return _weighted(splat(1.0), at_least(x, splat(LEAST)))
    if code == GELU_TANH:
        v = at_least(x, splat(LEAST))
        z = v * fma(v * v, splat(GELU_3), splat(GELU_1))
        return _weighted(v, at_least(z, splat(LEAST)))
    if code == TANH:
        return _weighted(splat(2.0), at_least(x + x, splat(LEAST))) - splat(1.0)
    return activate(code, x, alpha, beta)
