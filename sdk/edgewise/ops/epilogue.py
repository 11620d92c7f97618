"""What ``linear``, ``conv`` and ``depthwise_conv`` do to a sum before they store it.

``y = activation(sum * scale + shift + residual)``: the activation is named by an
attribute, and known to kernels by its code.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.op import Array, Op
from edgewise.ops import formulas
from edgewise.ops.checks import FLOATS, same_dtype, want, want_broadcast, want_shape
from edgewise.ops.formulas import Doubles
from edgewise.types import TensorType


class Activation(enum.IntEnum):
    """Activations an epilogue has; the number is its code in kernels and never changes.

    ``alpha`` and ``beta`` are the bounds of ``CLIP``, the line of ``HARD_SIGMOID``, and
    ``alpha`` alone is the slope of ``LEAKY_RELU`` and the limit of ``ELU``.
    """

    NONE = 0
    RELU = 1
    CLIP = 2
    LEAKY_RELU = 3
    HARD_SIGMOID = 4
    HARD_SWISH = 5
    SIGMOID = 6
    SILU = 7
    TANH = 8
    GELU = 9
    GELU_TANH = 10
    ELU = 11
    SOFTPLUS = 12
    MISH = 13


NAMES = tuple(member.name.lower() for member in Activation)

_MEANING: dict[Activation, Callable[[Doubles, float, float], Doubles]] = {
    Activation.NONE: lambda x, _a, _b: x,
    Activation.RELU: lambda x, _a, _b: formulas.relu(x),
    Activation.CLIP: formulas.clip,
    Activation.LEAKY_RELU: lambda x, a, _b: formulas.leaky_relu(x, a),
    Activation.HARD_SIGMOID: formulas.hard_sigmoid,
    Activation.HARD_SWISH: lambda x, _a, _b: formulas.hard_swish(x),
    Activation.SIGMOID: lambda x, _a, _b: formulas.sigmoid(x),
    Activation.SILU: lambda x, _a, _b: formulas.silu(x),
    Activation.TANH: lambda x, _a, _b: np.tanh(x),
    Activation.GELU: lambda x, _a, _b: formulas.gelu(x),
    Activation.GELU_TANH: lambda x, _a, _b: formulas.gelu_tanh(x),
    Activation.ELU: lambda x, a, _b: formulas.elu(x, a),
    Activation.SOFTPLUS: lambda x, _a, _b: formulas.softplus(x),
    Activation.MISH: lambda x, _a, _b: formulas.mish(x),
}


def code(name: str) -> Activation:
    """The activation called ``name``; its integer value is the code for kernels."""
    if name not in NAMES:
        raise InternalError(f"no activation {name!r}; there are {', '.join(NAMES)}")
    return Activation(NAMES.index(name))


def activate(name: str, x: Doubles, alpha: float, beta: float) -> Doubles:
    """The activation called ``name`` of ``x``, in double precision."""
    with np.errstate(all="ignore"):
        return _MEANING[code(name)](x, alpha, beta)


def want_epilogue(
    op: Op, result: TensorType, activation: str, *inputs: TensorType | None
) -> None:
    """Raise unless scale, shift, residual in ``inputs`` fit a sum like ``result``."""
    scale, shift, residual = (*inputs, None, None, None)[:3]
    code(activation)
    same_dtype(op, result, scale, shift, residual)
    want(op, (result,), FLOATS)
    want_shape(op, "scale", scale, result.shape[-1])
    want_shape(op, "shift", shift, result.shape[-1])
    want_broadcast(op, "residual", residual, result.shape)


def parameters(name: str) -> tuple[float, float]:
    """A telling ``alpha`` and ``beta``, for samples."""
    known = {"clip": (-0.5, 0.75), "hard_sigmoid": (0.3, 0.4), "leaky_relu": (0.1, 0.0)}
    return known.get(name, (0.7, 0.0))


def finish(
    total: Doubles,
    activation: tuple[str, float, float],
    dtype: np.dtype[np.generic],
    *inputs: Array | None,
) -> Array:
    """``activation(total * scale + shift + residual)``, rounded once to ``dtype``."""
    scale, shift, residual = (*inputs, None, None, None)[:3]
    with np.errstate(all="ignore"):
        if scale is not None:
            total = total * scale
        if shift is not None:
            total = total + shift
        if residual is not None:
            total = total + residual
        return activate(activation[0], total, *activation[1:]).astype(dtype)
