"""Arithmetic of two elements, with numpy's broadcasting."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from edgewise.errors import DIVISION_BY_ZERO
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    NUMBERS,
    broadcast,
    same_dtype,
    stopped,
    want,
    wide,
)
from edgewise.types import DType, TensorType


class Binary(Op):
    """A numpy function over pairs of elements of one type.

    Class Attributes:
        function: What it computes.
        allowed: Element types it takes.
        tested: Element types of samples.
    """

    in_place = (0, 1)
    function: ClassVar[Callable[..., Any]]
    allowed: ClassVar[frozenset[DType]] = NUMBERS
    tested: ClassVar[tuple[str, ...]] = (
        "float32", "float64", "float16", "int64", "int32", "uint8",
    )  # fmt: skip

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        same_dtype(self, a, b)
        want(self, (a,), self.allowed)
        if a.shape == b.shape:
            return a
        return a.with_shape(broadcast(self, a.shape, b.shape))

    def reference(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(type(self).function(a, b), a.dtype)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield from (Sample(cls(), pair) for pair in cls.pairs())

    @classmethod
    def pairs(cls) -> Iterator[tuple[Array, Array]]:
        """Inputs of samples: every way to broadcast, and the ends of every type."""
        for dtype in cls.tested:
            shapes = cases.PAIRS if dtype == cls.tested[0] else cases.PAIRS[:5:2]
            for left, right in shapes:
                yield cls._array(left, dtype, 0), cls._array(right, dtype, 1)
            if dtype.startswith("float"):
                yield cases.special_pairs(dtype)
            elif dtype != "bool":
                yield cls._ends(dtype)

    @classmethod
    def _array(cls, shape: tuple[int, ...], dtype: str, seed: int) -> Array:
        if dtype == "bool":
            return cases.bools(*shape, seed=seed)
        if dtype.startswith("float"):
            return cases.floats(*shape, dtype=dtype, seed=seed)
        return cases.whole(*shape, dtype=dtype, seed=seed)

    @classmethod
    def _ends(cls, dtype: str) -> tuple[Array, Array]:
        ends = cases.extremes(dtype)
        left, right = zip(*itertools.product(ends, ends), strict=True)
        return np.asarray(left, dtype), np.asarray(right, dtype)


class _Divided(Binary):
    """A division, which integers by zero stop."""

    def reference(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu" and a.size and not np.all(b):
            raise stopped(self, DIVISION_BY_ZERO)
        with np.errstate(all="ignore"):
            return np.asarray(self.divided(a, b), a.dtype)

    def divided(self, a: Array, b: Array) -> Array:
        """The result where no integer is divided by zero."""
        return np.asarray(type(self).function(a, b))

    @classmethod
    def pairs(cls) -> Iterator[tuple[Array, Array]]:
        for a, b in super().pairs():
            whole = b.dtype.kind in "iu"
            yield a, np.where((b == 0) & whole, b.dtype.type(3), b)


class Add(Binary, name="add"):
    """``a + b``; integers wrap around."""

    commutative = True
    function = np.add


class Sub(Binary, name="sub"):
    """``a - b``; integers wrap around."""

    function = np.subtract


class Mul(Binary, name="mul"):
    """``a * b``; integers wrap around."""

    commutative = True
    function = np.multiply


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(np.divide(a, b))
    quotient = np.floor_divide(a, b)
    inexact = np.remainder(a, b) != 0
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))))


class Div(_Divided, name="div"):
    """``a / b``; integers are truncated towards zero."""

    function = staticmethod(_divide)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(np.power(wide(a), wide(b)))
    powers = np.power(a, np.maximum(b, 0))
    # Below zero the power is 1 / a^n, truncated: only -1 and 1 leave something.
    odd = np.where(np.bitwise_and(b, 1) == 1, a, 1)
    return np.where(b < 0, np.where(np.abs(a) == 1, odd, 0), powers)


class Pow(Binary, name="pow"):
    """``a`` to the power of ``b``; integers wrap around, and 1 / n is truncated."""

    function = staticmethod(_power)
    tested = ("float32", "float64", "int64", "int32")

    def reference(self, a: Array, b: Array) -> Array:
        if a.dtype.kind in "iu" and np.any((a == 0) & (b < 0)):
            raise stopped(self, DIVISION_BY_ZERO)
        return super().reference(a, b)

    @classmethod
    def pairs(cls) -> Iterator[tuple[Array, Array]]:
        for a, b in super().pairs():
            if a.dtype.kind == "f":
                yield np.abs(a), b
            else:
                yield np.where(a == 0, a.dtype.type(2), a), b
        yield np.asarray([-2, -2, -3, 2.5], "f4"), np.asarray([2, 3, -1, 2], "f4")


class Mod(_Divided, name="mod"):
    """The remainder: with the sign of ``b``, or of ``a`` where ``fmod``."""

    function = np.remainder
    fmod: bool = False

    def divided(self, a: Array, b: Array) -> Array:
        return np.fmod(a, b) if self.fmod else super().divided(a, b)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for pair in cls.pairs():
            yield Sample(cls(), pair)
            yield Sample(cls(fmod=True), pair)


class Minimum(Binary, name="minimum"):
    """The smaller one; NaN where either is."""

    commutative = True
    function = np.minimum


class Maximum(Binary, name="maximum"):
    """The larger one; NaN where either is."""

    commutative = True
    function = np.maximum
