"""Pooling that also says where: the largest elements, and their places."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import NUMBERS, want
from edgewise.ops.windows import Window
from edgewise.types import DType, TensorType


class MaxPoolPlaces(Op, name="max_pool_places"):
    """The largest element of every window over ``x[N, C, ...]``, and its place in x.

    A place counts all elements of x in their order; with ``column_major`` the spatial
    axes count from the first one on.  Of equal elements the first wins, NaN over all.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    column_major: bool = False

    @property
    def window(self) -> Window:
        """How the windows lie."""
        return Window(self.kernel, self.strides, self.pads, self.dilations)

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        want(self, (x,), NUMBERS)
        if x.rank < 3:
            raise self.refuse((x,), "[N, C, ...]")
        last = x.with_shape((x.shape[0], *x.shape[2:], x.shape[1]))
        shape = self.window.shape(self, last, x.shape[1], x.rank - 2)
        y = x.with_shape((x.shape[0], x.shape[1], *shape[1:-1]))
        return y, y.with_dtype(DType.I64)

    def reference(self, x: Array) -> tuple[Array, Array]:
        whole = x.dtype.kind in "iu"
        lowest = np.iinfo(x.dtype).min if whole else -np.inf
        seen = self._taps(x, lowest)
        places = self._taps(self._places(x.shape), -1)
        winner = np.argmax(seen, 0)[None]
        # The border must lose against elements that are as low.
        border = np.take_along_axis(places, winner, 0) < 0
        winner = np.where(border, np.argmax(places >= 0, 0)[None], winner)
        y, place = (np.take_along_axis(a, winner, 0)[0] for a in (seen, places))
        return (
            np.ascontiguousarray(np.moveaxis(y, -1, 1)).astype(x.dtype),
            np.ascontiguousarray(np.moveaxis(place, -1, 1)).astype(np.int64),
        )

    def _taps(self, x: Array, border: float) -> Array:
        padded = self.window.padded(np.moveaxis(x, 1, -1), border)
        return np.stack(list(self.window.taps(padded)))

    def _places(self, shape: tuple[int, ...]) -> Array:
        sizes = shape[2:]
        one = np.arange(math.prod(sizes))
        laid = one.reshape(sizes[::-1]).T if self.column_major else one.reshape(sizes)
        images = np.arange(shape[0] * shape[1]).reshape(*shape[:2], *(1,) * len(sizes))
        return np.asarray(images * math.prod(sizes) + laid)

    @staticmethod
    def samples() -> Iterator[Sample]:
        line, plane = cases.floats(2, 3, 9), cases.floats(2, 2, 5, 6)
        yield Sample(MaxPoolPlaces((3,), (2,), (1, 0), (1,)), (line,))
        for major in (False, True):
            op = MaxPoolPlaces((2, 3), (2, 1), (1, 0, 0, 2), (1, 2), major)
            yield Sample(op, (plane,))
            yield Sample(op, (plane[:0],))
        cube = MaxPoolPlaces((1, 2, 2), (1, 1, 2), (0,) * 6, (1, 1, 1), True)
        yield Sample(cube, (cases.whole(1, 2, 2, 3, 4, dtype="int8"),))
        equal = np.full((1, 1, 4), -np.inf, "f4")
        yield Sample(MaxPoolPlaces((3,), (1,), (1, 1), (1,)), (equal,))
        line[0, 0, 3], line[1, 1, 8] = np.nan, np.inf
        yield Sample(MaxPoolPlaces((3,), (2,), (1, 0), (1,)), (line,))
