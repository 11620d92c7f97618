"""What windows over the spatial axes of channels-last ``[N, ..., C]`` share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.dims import Dim, Shape, floordiv
from edgewise.ir.op import Array, Op
from edgewise.named import NamedTuple
from edgewise.ops.checks import wide
from edgewise.types import TensorType


class Window(NamedTuple):
    """How windows lie on an image; ``pads`` are all begins, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    def shape(self, op: Op, x: TensorType, channels: Dim, axes: int = 2) -> Shape:
        """The output's shape, once the attributes and the input are sane."""
        sizes = (self.kernel, self.strides, self.dilations)
        if (
            x.rank != axes + 2
            or any(len(each) != axes or min(each) < 1 for each in sizes)
            or len(self.pads) != 2 * axes
            or min(self.pads) < 0
        ):
            raise op.refuse((x,), f"[N, ..., C] and {axes} positive sizes in {op!r}")
        reach = self.reach
        rooms = [
            x.shape[axis + 1] + (self.pads[axis] + self.pads[axis + axes] - reach[axis])
            for axis in range(axes)
        ]
        if any(isinstance(room, int) and room < 0 for room in rooms):
            raise op.refuse((x,), f"a window of {list(reach)} in the padded input")
        counts = map(floordiv, rooms, self.strides)
        return (x.shape[0], *(count + 1 for count in counts), channels)

    @property
    def reach(self) -> tuple[int, ...]:
        """From the first element of a window to behind its last, along each axis."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return tuple(dilation * (size - 1) + 1 for size, dilation in pairs)

    def padded(self, x: Array, value: float) -> Array:
        """The input, floats in double precision, with its border of pads."""
        axes = len(self.kernel)
        border = zip(self.pads[:axes], self.pads[axes:], strict=True)
        width = ((0, 0), *border, (0, 0))
        return np.pad(wide(x), width, constant_values=value)

    def taps(self, padded: Array) -> Iterator[Array]:
        """For each tap of the window, row by row, what all windows see there."""
        for place in self.places(padded.shape[1:-1]):
            yield padded[(slice(None), *place)]

    def places(self, sizes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
        """For each tap, row by row, where it lies in all windows over ``sizes``."""
        last = [size - reach for size, reach in zip(sizes, self.reach, strict=True)]
        for tap in itertools.product(*map(range, self.kernel)):
            starts = [t * d for t, d in zip(tap, self.dilations, strict=True)]
            yield tuple(
                slice(start, start + end + 1, stride)
                for start, end, stride in zip(starts, last, self.strides, strict=True)
            )


class OverWindows(Op):
    """An op with windows; its attributes say how they lie."""

    @property
    def window(self) -> Window:
        """How the windows lie."""
        op: Any = self
        return Window(op.kernel, op.strides, op.pads, op.dilations)


class Windowed(OverWindows):
    """An op with windows over two axes of an image, channels last."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)


# Input [N, H, W] and attributes: tails, borders, uneven pads, no images.
WINDOWS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((1, 5, 7), {"kernel": (3, 3)}),
    ((2, 7, 5), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    ((1, 9, 8), {"kernel": (3, 2), "dilations": (2, 3), "pads": (1, 0, 2, 1)}),
    ((1, 1, 17), {"kernel": (1, 5), "strides": (1, 3), "pads": (0, 2, 0, 2)}),
    ((1, 6, 6), {"kernel": (2, 2), "strides": (2, 2)}),
    ((0, 5, 5), {"kernel": (3, 3), "pads": (1, 1, 1, 1)}),
)
