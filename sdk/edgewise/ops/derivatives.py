"""Derivatives of the formulas that epilogues have, in double precision.

Where a formula has a corner the derivative is that of PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from edgewise.ops.epilogue import Activation, code
from edgewise.ops.formulas import Doubles, erf, sigmoid, softplus

_NORMAL = 1 / math.sqrt(2 * math.pi)


def _elu(x: Doubles, alpha: float) -> Doubles:
    return np.where(x > 0, 1.0, alpha * np.exp(np.minimum(x, 0.0)))


def _hard_sigmoid(x: Doubles, alpha: float, beta: float) -> Doubles:
    line = alpha * x + beta
    return np.where((line > 0) & (line < 1), alpha, 0.0)


def _hard_swish(x: Doubles) -> Doubles:
    return np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, x / 3 + 0.5))


def _sigmoid(x: Doubles) -> Doubles:
    y = sigmoid(x)
    return y * (1 - y)


def _silu(x: Doubles) -> Doubles:
    y = sigmoid(x)
    return y * (1 + x * (1 - y))


def _gelu(x: Doubles) -> Doubles:
    below = 0.5 * (1 + erf(x * math.sqrt(0.5)))
    return np.asarray(below + x * _NORMAL * np.exp(-0.5 * x * x))


def _gelu_tanh(x: Doubles) -> Doubles:
    factor = math.sqrt(2 / math.pi)
    t = np.tanh(factor * (x + 0.044715 * x**3))
    inner = factor * (1 + 3 * 0.044715 * x * x)
    return np.asarray(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


def _mish(x: Doubles) -> Doubles:
    t = np.tanh(softplus(x))
    return np.asarray(t + x * (1 - t * t) * sigmoid(x))


_MEANING: dict[Activation, Callable[[Doubles, float, float], Doubles]] = {
    Activation.NONE: lambda x, _a, _b: np.ones_like(x),
    Activation.RELU: lambda x, _a, _b: np.where(x > 0, 1.0, 0.0),
    Activation.CLIP: lambda x, a, b: np.where((x > a) & (x < b), 1.0, 0.0),
    Activation.LEAKY_RELU: lambda x, a, _b: np.where(x > 0, 1.0, a),
    Activation.HARD_SIGMOID: _hard_sigmoid,
    Activation.HARD_SWISH: lambda x, _a, _b: _hard_swish(x),
    Activation.SIGMOID: lambda x, _a, _b: _sigmoid(x),
    Activation.SILU: lambda x, _a, _b: _silu(x),
    Activation.TANH: lambda x, _a, _b: 1 - np.tanh(x) ** 2,
    Activation.GELU: lambda x, _a, _b: _gelu(x),
    Activation.GELU_TANH: lambda x, _a, _b: _gelu_tanh(x),
    Activation.ELU: lambda x, a, _b: _elu(x, a),
    Activation.SOFTPLUS: lambda x, _a, _b: sigmoid(x),
    Activation.MISH: lambda x, _a, _b: _mish(x),
}


def derivative(name: str, x: Doubles, alpha: float, beta: float) -> Doubles:
    """The derivative at ``x`` of the activation called ``name``."""
    with np.errstate(all="ignore"):
        return _MEANING[code(name)](x, alpha, beta)
