"""Real numbers to small integers and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    FLOATS,
    INTEGERS,
    fits,
    same_dtype,
    want,
    want_axis,
    wide,
)
from edgewise.types import TensorType


class _Quantised(Op):
    """One scale and zero point a tensor, or one for every element of ``axis``."""

    axis: int = -1

    def want_pair(self, x: TensorType, scale: TensorType, zero: TensorType) -> None:
        """Raise unless scale and zero fit ``x``."""
        want(self, (scale,), FLOATS)
        want(self, (zero,), INTEGERS)
        if scale.rank:
            want_axis(self, self.axis, x.rank)
        wanted = (x.shape[self.axis],) if scale.rank else ()
        if not fits(scale.shape, wanted) or not fits(zero.shape, wanted):
            raise self.refuse((x, scale, zero), f"scale and zero of shape {wanted}")

    def along(self, vector: Array, rank: int) -> Array:
        """Scale or zero in the shape that broadcasts over the tensor."""
        if not vector.ndim:
            return vector
        shape = [1] * rank
        shape[self.axis] = len(vector)
        return vector.reshape(shape)


class Quantize(_Quantised, name="quantize"):
    """``round(x / scale) + zero``, ties to even, held in the type of ``zero``.

    NaN becomes the zero point.
    """

    def infer(self, x: TensorType, scale: TensorType, zero: TensorType) -> TensorType:
        same_dtype(self, x, scale)
        self.want_pair(x, scale, zero)
        return x.with_dtype(zero.dtype)

    def reference(self, x: Array, scale: Array, zero: Array) -> Array:
        info = np.iinfo(zero.dtype)
        scale, zero = self.along(scale, x.ndim), self.along(zero, x.ndim)
        with np.errstate(all="ignore"):
            # The quotient is rounded in the type of x, as kernels do.
            steps = wide(np.rint(x / scale))
            moved = np.where(np.isnan(steps), 0.0, steps) + zero
            return np.asarray(np.clip(moved, info.min, info.max), zero.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        scale = np.asarray(0.05, "f4")
        for dtype in ("int8", "uint8", "int16"):
            zero = np.asarray(3, dtype)
            for shape in ((0,), (1,), (17,), (3, 33), ()):
                yield Sample(Quantize(), (3 * cases.floats(*shape), scale, zero))
            yield Sample(Quantize(), (cases.special(), scale, zero))
        half = np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], "f4")
        yield Sample(Quantize(), (half, np.asarray(1, "f4"), np.asarray(0, "i1")))
        for axis in (0, 1, 2):
            cube = (2, 7, 3)
            scales = cases.positive(cube[axis]) / np.float32(50)
            zeros = cases.whole(cube[axis], dtype="int8")
            yield Sample(Quantize(axis), (cases.floats(*cube), scales, zeros))


class Dequantize(_Quantised, name="dequantize"):
    """``(q - zero) * scale``."""

    def infer(self, q: TensorType, scale: TensorType, zero: TensorType) -> TensorType:
        if q.dtype is not zero.dtype:
            raise DTypeError(f"dequantize: got {q} and zero {zero}; want equal types")
        self.want_pair(q, scale, zero)
        return q.with_dtype(scale.dtype)

    def reference(self, q: Array, scale: Array, zero: Array) -> Array:
        scale, zero = self.along(scale, q.ndim), self.along(zero, q.ndim)
        moved = q.astype(np.float64) - zero
        with np.errstate(all="ignore"):
            return np.asarray(moved * wide(scale), scale.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        scale = np.asarray(0.05, "f4")
        for dtype in ("int8", "uint8", "int16", "int32"):
            zero = np.asarray(3, dtype)
            for shape in ((0,), (1,), (17,), (3, 33), ()):
                q = cases.whole(*shape, dtype=dtype, low=-99, high=99)
                yield Sample(Dequantize(), (q, scale, zero))
            yield Sample(Dequantize(), (cases.extremes(dtype), scale, zero))
        for axis in (0, 1, 2):
            cube = (2, 7, 3)
            q = cases.whole(*cube, dtype="int8", low=-99, high=99)
            zeros = cases.whole(cube[axis], dtype="int8")
            yield Sample(Dequantize(axis), (q, cases.positive(cube[axis]), zeros))
