"""Choosing, converting and bounding elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    BOOLS,
    NUMBERS,
    STRINGS,
    broadcast,
    same_dtype,
    want,
)
from edgewise.types import DType, TensorType


class Where(Op, name="where"):
    """``a`` where the condition holds, else ``b``."""

    in_place = (1, 2)

    def infer(self, condition: TensorType, a: TensorType, b: TensorType) -> TensorType:
        want(self, (condition,), BOOLS)
        same_dtype(self, a, b)
        return a.with_shape(broadcast(self, condition.shape, a.shape, b.shape))

    def reference(self, condition: Array, a: Array, b: Array) -> Array:
        return np.where(condition, a, b)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for c, a, b in (
            ((0,), (0,), (0,)),
            ((17,), (17,), (17,)),
            ((1,), (7,), (1,)),
            ((7,), (), ()),
            ((3, 1), (1, 5), (3, 5)),
            ((5,), (3, 5), (3, 1)),
            ((2, 3, 4), (4,), ()),
        ):
            inputs = (cases.bools(*c), cases.floats(*a), cases.floats(*b, seed=1))
            yield Sample(Where(), inputs)
        bad = cases.special()
        yield Sample(Where(), (cases.bools(len(bad)), bad, bad[::-1].copy()))
        for dtype in ("int64", "int32", "uint8"):
            left = cases.whole(9, dtype=dtype)
            right = cases.whole(9, dtype=dtype, seed=1)
            yield Sample(Where(), (cases.bools(9), left, right))
        yield Sample(Where(), (cases.bools(9), cases.bools(9, seed=1), cases.bools(1)))


class Cast(Op, name="cast"):
    """The same values as another type, ``to``.

    Floats lose their fraction on the way to integers; what lies beyond the integers
    becomes the nearest one, NaN becomes 0 (ONNX leaves both open).  Integers wrap
    around in a narrower type, and so do floats in one of 4 or 2 bits.  Anything but 0
    is true.

    Attributes:
        saturate: In 8 bits, what lies beyond the largest float becomes that one; else
            it becomes an infinity, or NaN where the type has none.
        rounding: Which power of two the type of those alone takes: ``up``, ``down``, or
            the ``nearest``, of two equally near the larger.
    """

    in_place = (0,)
    to: str
    saturate: bool = True
    rounding: str = "up"

    def infer(self, x: TensorType) -> TensorType:
        try:
            dtype = DType(self.to)
        except ValueError as error:
            raise DTypeError(f"cast: {self.to!r} names no element type") from error
        if STRINGS & {x.dtype, dtype}:
            raise DTypeError(f"cast: got {x} to {self.to}; want no strings")
        if self.rounding not in ROUNDINGS:
            raise DTypeError(f"cast: rounds {self.rounding!r}; want one of {ROUNDINGS}")
        return x.with_dtype(dtype)

    def reference(self, x: Array) -> Array:
        dtype = DType(self.to)
        with np.errstate(all="ignore"):
            if dtype is DType.F8E8M0FNU:
                return self._power(x.astype(np.float64))
            if dtype.is_integer and x.dtype.kind not in "iub":
                return _truncated(x.astype(np.float64), dtype)
            if self.saturate and dtype in _LARGEST:
                wide = x.astype(np.float64 if x.dtype.itemsize > 4 else np.float32)
                x = np.clip(wide, -_LARGEST[dtype], _LARGEST[dtype])
            return x.astype(dtype.numpy)

    def _power(self, x: Array) -> Array:
        """The power of two for each number from 0 on; NaN for any other."""
        mantissa, exponent = np.frexp(x)
        least = {"up": 0.5, "nearest": 0.75, "down": 1.0}[self.rounding]
        rises = mantissa > least if self.rounding == "up" else mantissa >= least
        power = np.where(x == 0, -np.inf, exponent - 1.0 + rises)
        power = np.where(x == np.inf, np.inf, power)
        if self.saturate:
            power = np.clip(power, -127, 127)
        known = (x >= 0) & (power >= -127) & (power <= 127)
        bits = np.where(known, power + 127, 255).astype(np.uint8)
        return bits.view(DType.F8E8M0FNU.numpy)

    @staticmethod
    def samples() -> Iterator[Sample]:
        names = ("float32", "float64", "float16", "int64", "int32", "int8", "uint8")
        for source in (*names, "bool"):
            for target in (*names, "bool"):
                to = DType.of(np.dtype(target)).value
                for x in (*list(cases.arrays(source))[:5:2],):
                    yield Sample(Cast(to), (x,))
        for target in ("f16", "f64", "i64", "i32", "i8", "u8", "bool"):
            yield Sample(Cast(target), (cases.special(),))
        for source in ("int64", "int32"):
            for target in ("f32", "f64", "i64", "i32", "i8", "u8", "bool"):
                yield Sample(Cast(target), (cases.extremes(source),))
        yield from _narrow_samples()


def _narrow_samples() -> Iterator[Sample]:
    for saturate in (True, False):
        for target in ("bf16", "f8e4m3fn", "f8e5m2fnuz", "f4e2m1fn", "i4", "u2"):
            yield Sample(Cast(target, saturate), (cases.special(),))
        for rounding in ROUNDINGS:
            op = Cast("f8e8m0fnu", saturate, rounding)
            yield Sample(op, (np.abs(cases.special()),))


ROUNDINGS = ("up", "down", "nearest")
# The largest number of each type of 8 bits with a sign.
_LARGEST = {
    DType.F8E4M3FN: 448.0,
    DType.F8E4M3FNUZ: 240.0,
    DType.F8E5M2: 57344.0,
    DType.F8E5M2FNUZ: 57344.0,
}


def _truncated(x: Array, dtype: DType) -> Array:
    if dtype.width < dtype.bits:
        # Here ONNX's own cases keep the lower bits, as between integers.
        return _truncated(x, DType.I64).astype(dtype.numpy)
    info = np.iinfo(dtype.numpy.type)  # type: ignore[type-var]  # an integer type
    whole = np.trunc(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = np.clip(whole, info.min, info.max).astype(dtype.numpy)
    # The largest 64-bit integers are not doubles: clipping rounds up, beyond the type.
    low, high = whole <= info.min, whole >= info.max
    return np.where(high, info.max, np.where(low, info.min, inside)).astype(dtype.numpy)


class Clip(Op, name="clip"):
    """``min(max(x, low), high)``; NaN stays."""

    in_place = (0,)
    low: float = -np.inf
    high: float = np.inf

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS)
        return x

    def reference(self, x: Array) -> Array:
        if x.dtype.kind in "iu":
            info = np.iinfo(x.dtype)
            low = min(max(np.ceil(self.low), info.min), info.max)
            high = min(max(np.floor(self.high), info.min), info.max)
            bounds = np.asarray([int(low), int(high)], x.dtype)
            return np.asarray(np.minimum(np.maximum(x, bounds[0]), bounds[1]))
        with np.errstate(all="ignore"):
            low, high = x.dtype.type(self.low), x.dtype.type(self.high)
            return np.asarray(np.minimum(np.maximum(x, low), high), x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for dtype in ("float32", "float64", "float16"):
            for x in cases.arrays(dtype):
                yield Sample(Clip(-0.5, 0.75), (x,))
            yield Sample(Clip(0.0, 6.0), (cases.special(dtype),))
            yield Sample(Clip(), (cases.special(dtype),))
        yield Sample(Clip(low=0.0), (cases.floats(7),))
        yield Sample(Clip(high=0.5), (cases.floats(7),))
        yield Sample(Clip(1.0, -1.0), (cases.floats(7),))
        for dtype in ("int64", "int32", "int8", "uint8"):
            yield Sample(Clip(-1.5, 2.5), (cases.extremes(dtype),))
            yield Sample(Clip(), (cases.extremes(dtype),))
