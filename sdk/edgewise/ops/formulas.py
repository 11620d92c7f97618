"""Formulas in double precision: one meaning for ops and epilogues.

Every activation takes float64 and gives float64.  NaN goes through all of them, and no
finite input overflows on its way to a finite result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Doubles: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


def by_element(function: Callable[[float], float]) -> Callable[[Doubles], Doubles]:
    """A function of the standard library over every element; numpy lacks ``erf``."""
    lifted = np.frompyfunc(function, 1, 1)

    def apply(x: Doubles) -> Doubles:
        return np.asarray(lifted(x), np.float64)

    return apply


erf = by_element(math.erf)


def relu(x: Doubles) -> Doubles:
    """``max(x, 0)``."""
    return np.maximum(x, 0.0)


def clip(x: Doubles, low: float, high: float) -> Doubles:
    """``min(max(x, low), high)``."""
    return np.minimum(np.maximum(x, low), high)


def leaky_relu(x: Doubles, slope: float) -> Doubles:
    """``x`` where it is not negative, else ``slope * x``."""
    return np.where(x < 0, slope * x, x)


def elu(x: Doubles, alpha: float) -> Doubles:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def sigmoid(x: Doubles) -> Doubles:
    """``1 / (1 + exp(-x))``, by the half whose exponential cannot overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def hard_sigmoid(x: Doubles, alpha: float, beta: float) -> Doubles:
    """``min(max(alpha * x + beta, 0), 1)``."""
    return clip(alpha * x + beta, 0.0, 1.0)


def hard_swish(x: Doubles) -> Doubles:
    """``x * hard_sigmoid(x)`` with the slope 1/6 and the offset 1/2."""
    return x * hard_sigmoid(x, 1.0 / 6.0, 0.5)


def silu(x: Doubles) -> Doubles:
    """``x * sigmoid(x)``."""
    return x * sigmoid(x)


def gelu(x: Doubles) -> Doubles:
    """``x * P(X <= x)`` for a normal X."""
    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))


def gelu_tanh(x: Doubles) -> Doubles:
    """The tanh approximation of ``gelu``."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def softplus(x: Doubles) -> Doubles:
    """``log(1 + exp(x))``, without its overflow."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def softsign(x: Doubles) -> Doubles:
    """``x / (1 + |x|)``."""
    return x / (1.0 + np.abs(x))


def mish(x: Doubles) -> Doubles:
    """``x * tanh(softplus(x))``."""
    return x * np.tanh(softplus(x))


def normalised(x: Array, axes: tuple[int, ...], eps: float) -> Doubles:
    """Mean 0 and variance 1 over ``axes``, in two passes."""
    x = x.astype(np.float64)
    if not x.size:  # nothing has no mean, of which numpy warns
        return x
    centred = x - x.mean(axis=axes, keepdims=True)
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + eps))


def scaled(x: Doubles, scale: Array | None, shift: Array | None) -> Doubles:
    """``x * scale + shift``, of which either may be absent."""
    product = x if scale is None else x * scale
    return np.asarray(product if shift is None else product + shift)
