"""What windows over the two spatial axes of ``[N, H, W, C]`` share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from edgewise.dims import Dim, Shape, floordiv
from edgewise.ir.op import Array, Op
from edgewise.ops.checks import wide
from edgewise.types import TensorType


class Window(NamedTuple):
    """How windows lie on an image; ``pads`` are top, left, bottom, right."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    def shape(self, op: Op, x: TensorType, channels: Dim) -> Shape:
        """The output's shape, once the attributes and the input are sane."""
        sizes = (self.kernel, self.strides, self.dilations)
        if (
            x.rank != 4
            or any(len(pair) != 2 or min(pair) < 1 for pair in sizes)
            or len(self.pads) != 4
            or min(self.pads) < 0
        ):
            raise op.refuse((x,), f"[N, H, W, C] and two positive sizes in {op!r}")
        reach = self._reach()
        rooms = [
            x.shape[axis + 1] + (self.pads[axis] + self.pads[axis + 2] - reach[axis])
            for axis in (0, 1)
        ]
        if any(isinstance(room, int) and room < 0 for room in rooms):
            raise op.refuse((x,), f"a window of {list(reach)} in the padded input")
        height, width = map(floordiv, rooms, self.strides)
        return (x.shape[0], height + 1, width + 1, channels)

    def _reach(self) -> tuple[int, int]:
        height, width = (
            dilation * (size - 1) + 1
            for size, dilation in zip(self.kernel, self.dilations, strict=True)
        )
        return height, width

    def padded(self, x: Array, value: float) -> Array:
        """The input, floats in double precision, with its border of pads."""
        top, left, bottom, right = self.pads
        width = ((0, 0), (top, bottom), (left, right), (0, 0))
        return np.pad(wide(x), width, constant_values=value)

    def taps(self, padded: Array) -> Iterator[Array]:
        """For each tap of the window, row by row, what all windows see there."""
        (sh, sw), (dh, dw), reach = self.strides, self.dilations, self._reach()
        last_row = padded.shape[1] - reach[0]
        last_column = padded.shape[2] - reach[1]
        for r in range(self.kernel[0]):
            for s in range(self.kernel[1]):
                rows = slice(r * dh, r * dh + last_row + 1, sh)
                columns = slice(s * dw, s * dw + last_column + 1, sw)
                yield padded[:, rows, columns]


# Input [N, H, W] and attributes: tails, borders, uneven pads, no images.
WINDOWS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((1, 5, 7), {"kernel": (3, 3)}),
    ((2, 7, 5), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    ((1, 9, 8), {"kernel": (3, 2), "dilations": (2, 3), "pads": (1, 0, 2, 1)}),
    ((1, 1, 17), {"kernel": (1, 5), "strides": (1, 3), "pads": (0, 2, 0, 2)}),
    ((1, 6, 6), {"kernel": (2, 2), "strides": (2, 2)}),
    ((0, 5, 5), {"kernel": (3, 3), "pads": (1, 1, 1, 1)}),
)
