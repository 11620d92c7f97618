"""Pooling over channels-last images."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np

from edgewise.ir.op import Array, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, NUMBERS, want, want_axis
from edgewise.ops.windows import WINDOWS, Windowed
from edgewise.types import TensorType


class MaxPool(Windowed, name="max_pool"):
    """The largest element of every window; padding never wins, NaN does."""

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS)
        want_axis(self, 3, x.rank)
        return x.with_shape(self.window.shape(self, x, x.shape[3]))

    def reference(self, x: Array) -> Array:
        lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
        taps = self.window.taps(self.window.padded(x, lowest))
        return np.asarray(reduce(np.maximum, taps)).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for channels, (size, window) in zip((3, 17, 1, 16, 5, 2), WINDOWS, strict=True):
            yield Sample(MaxPool(**window), (cases.floats(*size, channels),))
        op = MaxPool((3, 3), pads=(1, 1, 1, 1))
        x = cases.floats(1, 5, 5, 2) - 9
        yield Sample(op, (x,))
        bad = x.copy()
        bad[0, 2, 2, 0], bad[0, 0, 0, 1], bad[0, 4, 4, 1] = np.nan, -np.inf, np.inf
        yield Sample(op, (bad,))
        yield Sample(op, (x.astype(np.float64),))
        for dtype in ("int8", "uint8"):
            yield Sample(op, (cases.whole(1, 5, 5, 3, dtype=dtype),))


class AveragePool(Windowed, name="average_pool"):
    """The mean of every window, over all its taps or over those inside the image."""

    count_include_pad: bool = False

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), FLOATS)
        want_axis(self, 3, x.rank)
        return x.with_shape(self.window.shape(self, x, x.shape[3]))

    def reference(self, x: Array) -> Array:
        inside = np.ones((1, *x.shape[1:3], 1))
        border = float(self.count_include_pad)
        count = sum(self.window.taps(self.window.padded(inside, border)))
        with np.errstate(all="ignore"):
            total = sum(self.window.taps(self.window.padded(x, 0.0)))
            # A window that lies in the border alone has the mean 0.
            return np.asarray(total / np.maximum(count, 1.0)).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for channels, (size, window) in zip((3, 17, 1, 16, 5, 2), WINDOWS, strict=True):
            for count in (False, True):
                op = AveragePool(**window, count_include_pad=count)
                yield Sample(op, (cases.floats(*size, channels),))
        bad = cases.floats(1, 5, 5, 2)
        bad[0, 2, 2, 0], bad[0, 0, 0, 1] = np.nan, np.inf
        yield Sample(AveragePool((3, 3), pads=(1, 1, 1, 1)), (bad,))
        yield Sample(AveragePool((1, 1), pads=(1, 1, 1, 1)), (bad,))
        yield Sample(AveragePool((2, 3)), (bad.astype(np.float64),))
