"""What training needs of batch norms: mean and variance of a batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, want, want_axis, wide
from edgewise.types import TensorType


class BatchStatistics(Op, name="batch_statistics"):
    """Mean and variance over all axes but one, for each element of that one.

    The variance is that of the numbers that are there (divided by their count), as a
    batch norm in training divides by.
    """

    axis: int

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        vector = x.with_shape((x.shape[self.axis],))
        return vector, vector

    def reference(self, x: Array) -> tuple[Array, ...]:
        axes = tuple(axis for axis in range(x.ndim) if axis != self.axis)
        count = int(np.prod([x.shape[axis] for axis in axes]))
        if not count:
            nothing = np.full(x.shape[self.axis], np.nan, x.dtype)
            return nothing, nothing
        with np.errstate(all="ignore"):
            mean = wide(x).mean(axis=axes, keepdims=True)
            variance = np.square(wide(x) - mean).mean(axis=axes)
        return mean.reshape(-1).astype(x.dtype), variance.astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis in (((7, 1), 1), ((3, 17), 1), ((2, 3, 4, 5), 3), ((4, 33), 0)):
            yield Sample(BatchStatistics(axis), (cases.floats(*shape),))
        # Far from zero a sum of squares would lose the variance.
        yield Sample(BatchStatistics(1), (cases.floats(64, 17) + np.float32(3000),))
        yield Sample(BatchStatistics(1), (np.full((5, 3), 2.5, np.float32),))
        yield Sample(BatchStatistics(1), (cases.floats(0, 3),))
