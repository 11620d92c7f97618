"""What belongs to a whole matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, may_equal, want, wide
from edgewise.types import TensorType


class Det(Op, name="det"):
    """The determinant of every matrix in the last two axes."""

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), FLOATS)
        if x.rank < 2 or not may_equal(x.shape[-1], x.shape[-2]):
            raise self.refuse((x,), "square matrices in the last two axes")
        return x.with_shape(x.shape[:-2])

    def reference(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(np.linalg.det(wide(x))).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((1, 1), (3, 3), (0, 0), (2, 3, 7, 7), (0, 2, 2)):
            yield Sample(Det(), (cases.floats(*shape),))
        yield Sample(Det(), (np.ones((3, 3), "f4"),))
        yield Sample(Det(), (np.diag([1.0, np.nan, 2.0]).astype("f4"),))
        for dtype in ("float64", "float16"):
            yield Sample(Det(), (cases.floats(3, 3, dtype=dtype),))
