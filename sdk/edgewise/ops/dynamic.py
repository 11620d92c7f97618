"""Ops whose results are as large as their input's values say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import BOOLS, NUMBERS, want
from edgewise.types import DType, TensorType


class NonZero(Op, name="non_zero"):
    """Indices of the elements that are not 0: ``size`` columns, a row an axis."""

    dynamic = True
    size: Dim

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS | BOOLS)
        return TensorType(DType.I64, (x.rank, self.size))

    def reference(self, x: Array) -> Array:
        if not x.ndim:  # numpy counts no axes as one
            return np.zeros((0, int(x != 0)), np.int64)
        return np.asarray(np.nonzero(x), np.int64)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for array in (
            np.asarray([0, 3, 0, -1], "f4"),
            np.asarray([[np.nan, 0], [-0.0, 1]], "f4"),
            cases.bools(3, 4),
            np.zeros((0, 3), "i8"),
            np.asarray(5),
            np.asarray(0),
        ):
            size = int(np.count_nonzero(array))
            yield Sample(NonZero(size), (array,))
