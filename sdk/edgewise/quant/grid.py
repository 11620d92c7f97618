"""The numbers that bytes stand for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgewise.ir.op import Array
from edgewise.passes.byte_steps import Pair
from edgewise.types import DType

LEVELS, WIDE_LEVELS = 255, 65535  # of 8 and 16 bits
LEAST = 2.0**-100  # a step; a range of less is a single number


class Grid(NamedTuple):
    """``(q - zero) * scale`` for q from 0 to 255."""

    scale: float
    zero: int

    @property
    def pair(self) -> Pair:
        """The same with the type of the bytes."""
        return Pair(DType.U8, self.scale, self.zero)

    def rounded(self, x: Array) -> Array:
        """The nearest numbers that there are."""
        steps = np.clip(np.rint(x / self.scale) + self.zero, 0, LEVELS)
        return np.asarray((steps - self.zero) * self.scale)


def grid(
    low: float, high: float, *, symmetric: bool = False, levels: int = LEVELS
) -> Grid:
    """The grid over a range, widened so that it holds zero exactly.

    ``levels`` is the largest q that there is.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric:
        half = levels // 2
        scale = max(max(-low, high) / half, LEAST)
        return Grid(float(np.float32(scale)), half + 1)
    scale = float(np.float32(max((high - low) / levels, LEAST)))
    return Grid(scale, int(np.clip(np.rint(-low / scale), 0, levels)))
