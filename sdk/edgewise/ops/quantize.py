"""Real numbers to small integers and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Shape, ceildiv
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
from edgewise.types import DType, TensorType


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    bits = int(dtype.value[1:])
    if dtype.value.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def rounded(steps: Array, zero: int, kind: DType) -> Array:
    """``steps`` from a zero point as whole numbers of a type: ties to even.

    NaN becomes the zero point.
    """
    whole = np.rint(steps)
    whole = np.where(np.isnan(whole), np.float32(0.0), whole) + zero
    return np.asarray(np.clip(whole, *limits(kind)).astype(kind.numpy))


class _Quantised(Op):
    """One scale and zero point a tensor, one for every element of ``axis``, or blocks.

    With ``block`` the scales have the shape of the tensor, but that ``block`` elements
    along ``axis`` share one.
    """

    narrow = True
    axis: int = -1
    block: int = 0

    def want_pair(self, x: TensorType, scale: TensorType, zero: TensorType) -> None:
        """Raise unless scale and zero fit ``x``."""
        want(self, (scale,), FLOATS)
        want(self, (zero,), INTEGERS)
        if scale.rank:
            want_axis(self, self.axis, x.rank)
        if self.block < 0:
            raise self.refuse((x,), f"blocks of 1 or more, not {self.block}")
        wanted: Shape = (x.shape[self.axis],) if scale.rank else ()
        if self.block and scale.rank:
            head, tail = x.shape[: self.axis], x.shape[self.axis + 1 :]
            wanted = (*head, ceildiv(x.shape[self.axis], self.block), *tail)
        if not fits(scale.shape, wanted) or not fits(zero.shape, wanted):
            raise self.refuse((x, scale, zero), f"scale and zero of shape {wanted}")

    def along(self, vector: Array, shape: tuple[int, ...]) -> Array:
        """Scale or zero, as doubles, in a shape that broadcasts over the tensor."""
        vector = vector.astype(np.float64)
        if not vector.ndim:
            return vector
        if self.block:
            return vector.take(np.arange(shape[self.axis]) // self.block, self.axis)
        lined = [1] * len(shape)
        lined[self.axis] = len(vector)
        return vector.reshape(lined)


class Quantize(_Quantised, name="quantize"):
    """``round(x / scale) + zero``, ties to even, held in the type of ``zero``.

    NaN becomes the zero point.
    """

    def infer(self, x: TensorType, scale: TensorType, zero: TensorType) -> TensorType:
        same_dtype(self, x, scale)
        self.want_pair(x, scale, zero)
        return x.with_dtype(zero.dtype)

    def reference(self, x: Array, scale: Array, zero: Array) -> Array:
        low, high = limits(DType.of(zero.dtype))
        with np.errstate(all="ignore"):
            # The quotient is rounded to the type of x, as kernels do.
            quotient = (wide(x) / self.along(scale, x.shape)).astype(x.dtype)
            steps = np.rint(wide(quotient))
            moved = np.where(np.isnan(steps), 0.0, steps) + self.along(zero, x.shape)
            return np.asarray(np.clip(moved, low, high).astype(zero.dtype))

    @staticmethod
    def samples() -> Iterator[Sample]:
        scale = np.asarray(0.05, "f4")
        for dtype in ("int8", "uint8", "int16", "uint16"):
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

        for op, dtype in ((Quantize(1, 3), "int8"), (Quantize(0, 2), "uint16")):
            x, shape = cases.floats(4, 6), ((4, 2), (2, 6))[1 - op.axis]
            scales = cases.positive(*shape) / np.float32(50)
            yield Sample(op, (x, scales, cases.whole(*shape, dtype=dtype)))
        uneven = cases.positive(2, 3), cases.whole(2, 3, dtype="int8")
        yield Sample(Quantize(1, 3), (cases.floats(2, 7), *uneven))


class Dequantize(_Quantised, name="dequantize"):
    """``(q - zero) * scale``."""

    def infer(self, q: TensorType, scale: TensorType, zero: TensorType) -> TensorType:
        if q.dtype is not zero.dtype:
            raise DTypeError(f"dequantize: got {q} and zero {zero}; want equal types")
        self.want_pair(q, scale, zero)
        return q.with_dtype(scale.dtype)

    def reference(self, q: Array, scale: Array, zero: Array) -> Array:
        with np.errstate(all="ignore"):
            moved = q.astype(np.float64) - self.along(zero, q.shape)
            product = moved * self.along(scale, q.shape)
            return np.asarray(product.astype(scale.dtype))

    @staticmethod
    def samples() -> Iterator[Sample]:
        scale = np.asarray(0.05, "f4")
        for dtype in ("int8", "uint8", "int16", "uint16", "int32"):
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
        for op, dtype in ((Dequantize(1, 3), "int8"), (Dequantize(0, 2), "uint16")):
            x, shape = cases.whole(4, 6, dtype=dtype), ((4, 2), (2, 6))[1 - op.axis]
            scales = cases.positive(*shape) / np.float32(50)
            yield Sample(op, (x, scales, cases.whole(*shape, dtype=dtype)))
        uneven = cases.positive(2, 3), cases.whole(2, 3, dtype="int8")
        yield Sample(Dequantize(1, 3), (cases.whole(2, 7, dtype="int8"), *uneven))


class BytePlanes(Op, name="byte_planes"):
    """``round(x / scale) + zero`` in 16 bits with a sign, as two images of bytes.

    The number is ``256 * (above - 128) + below``.  Sums of products of it are those of
    the one times 256, and of the other, so that products over bytes give them exactly.
    """

    narrow = True
    scale: float
    zero: int

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        want(self, (x,), frozenset({DType.F32}))
        low, high = limits(DType.I16)
        if not self.scale > 0 or not low <= self.zero <= high:
            raise self.refuse((x,), "a scale above 0 and a zero point of 16 bits")
        return x.with_dtype(DType.U8), x.with_dtype(DType.U8)

    def reference(self, x: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            steps = x / np.float32(self.scale)
        number = rounded(steps, self.zero, DType.I16).astype(np.int32)
        planes = (number >> 8) + 128, number & 255
        above, below = (np.asarray(plane, np.uint8) for plane in planes)
        return above, below

    @staticmethod
    def samples() -> Iterator[Sample]:
        for zero in (0, -12345, 32767):
            op = BytePlanes(1e-4, zero)
            for shape in ((0,), (1,), (17,), (3, 4099), ()):
                yield Sample(op, (3 * cases.floats(*shape),))
            yield Sample(op, (cases.special(),))
        half = np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], "f4")
        yield Sample(BytePlanes(1.0, 0), (half,))
