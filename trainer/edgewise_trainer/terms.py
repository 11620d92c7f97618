"""Constants beside a value: what losses, optimizers and gradients are written with."""

from __future__ import annotations

import numpy as np

from edgewise.ir.graph import Value, constant
from edgewise.ops import Cast, Expand


def scalar(number: float, like: Value) -> Value:
    """A constant of the element type of ``like``."""
    return constant(np.asarray(number, like.type.dtype.numpy))


def zeros(like: Value) -> Value:
    """Zeros in the shape of ``like``."""
    return Expand(like.type.shape)(scalar(0.0, like))


def as_float(truth: Value, like: Value) -> Value:
    """Truths as zeros and ones of the element type of ``like``."""
    return Cast(like.type.dtype.value)(truth)
