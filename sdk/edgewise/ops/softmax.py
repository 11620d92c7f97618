"""Softmax and its logarithm along one axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, want, want_axis, wide
from edgewise.types import TensorType


class _Normalised(Op):
    """Exponentials against their sum along ``axis``, moved so that none overflows."""

    axis: int

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        return x

    def moved(self, x: Array) -> tuple[Array, Array]:
        """The inputs minus their largest, and the sum of their exponentials."""
        peak = np.max(wide(x), axis=self.axis, keepdims=True, initial=-np.inf)
        moved = wide(x) - peak
        return moved, np.exp(moved).sum(axis=self.axis, keepdims=True)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for shape in ((1,), (7,), (3, 17), (0, 3), (2, 0), (2, 3, 5), (2, 3, 4, 5)):
            for axis in range(len(shape)):
                yield Sample(cls(axis), (5 * cases.floats(*shape),))
        x = cases.floats(5, 4)
        x[0], x[1, 2], x[2, 1], x[3] = 1e30, np.nan, -np.inf, -np.inf
        yield Sample(cls(1), (x,))
        yield Sample(cls(1), (np.asarray([[300.0, -300.0], [88.0, 89.0]], "f4"),))
        for dtype in ("float64", "float16"):
            yield Sample(cls(1), (cases.floats(3, 17, dtype=dtype),))


class Softmax(_Normalised, name="softmax"):
    """``exp(x) / sum(exp(x))``; of 16 bits and less, every step rounded to the type."""

    narrow = True

    def reference(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            if x.dtype.itemsize < 4:
                return self._in_steps(x)
            moved, total = self.moved(x)
            return np.asarray(np.exp(moved) / total, x.dtype)

    def _in_steps(self, x: Array) -> Array:
        """As ONNX spells it out, but for long sums: 256 + 1 is 256 in bfloat16.

        Eight terms are added in the type, more of such sums in double precision.
        """
        lowest = x.dtype.type(-np.inf)
        peak = np.max(x, axis=self.axis, keepdims=True, initial=lowest)
        terms = np.moveaxis(np.exp(x - peak), self.axis, -1)
        whole = -(-terms.shape[-1] // 8) * 8
        padded = np.zeros((*terms.shape[:-1], whole), x.dtype)
        padded[..., : terms.shape[-1]] = terms
        eights = padded.reshape(*terms.shape[:-1], whole // 8, 8)
        sums = eights.sum(axis=-1).astype(np.float64)
        total = sums.sum(axis=-1, keepdims=True)
        shares = (terms.astype(np.float64) / total).astype(x.dtype)
        return np.moveaxis(shares, -1, self.axis)


class LogSoftmax(_Normalised, name="log_softmax"):
    """``x - log(sum(exp(x)))``."""

    def reference(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            moved, total = self.moved(x)
            return np.asarray(moved - np.log(total), x.dtype)
