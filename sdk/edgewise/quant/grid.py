"""The numbers that bytes stand for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.ir.op import Array
from edgewise.types import DType

LEVELS = 255
LEAST = 2.0**-100  # a step; a range of less is a single number


class Grid(NamedTuple):
    """``(q - zero) * scale`` for q from 0 to 255."""

    scale: float
    zero: int

    @property
    def dtype(self) -> DType:
        """Of the bytes."""
        return DType.U8

    def rounded(self, x: Array) -> Array:
        """The nearest numbers that there are."""
        steps = np.clip(np.rint(x / self.scale) + self.zero, 0, LEVELS)
        return np.asarray((steps - self.zero) * self.scale)


def grid(low: float, high: float, *, symmetric: bool = False) -> Grid:
    """The grid over a range, widened so that it holds zero exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric:
        high = max(-low, high)
        scale = max(high / 127, LEAST)
        return Grid(float(np.float32(scale)), 128)
    scale = float(np.float32(max((high - low) / LEVELS, LEAST)))
    return Grid(scale, int(np.clip(np.rint(-low / scale), 0, LEVELS)))
