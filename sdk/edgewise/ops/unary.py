"""One element in, one out: arithmetic, trigonometry, rounding, tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases, formulas
from edgewise.ops.checks import BOOLS, FLOATS, INTEGERS, NUMBERS, want, wide
from edgewise.types import DType, TensorType


class Unary(Op):
    """A numpy function over every element.

    Class Attributes:
        function: Computes in double precision where the input holds floats.
        allowed: Element types it takes.
        domain: Where samples of floats lie; functions that give the same beyond, or
            NaN, need no other.
        tested: Element types of samples.
    """

    in_place = (0,)
    function: ClassVar[Callable[..., Any]]
    allowed: ClassVar[frozenset[DType]] = FLOATS
    domain: ClassVar[tuple[float, float]] = (-4.0, 4.0)
    tested: ClassVar[tuple[str, ...]] = ("float32", "float64", "float16")

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), self.allowed)
        return x

    def reference(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(type(self).function(wide(x)), x.dtype)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for dtype in cls.tested:
            yield from (Sample(cls(), (cls._moved(x),)) for x in cases.arrays(dtype))
            kind = np.dtype(dtype).kind
            if kind in "iu":
                yield Sample(cls(), (cases.extremes(dtype),))
            if kind == "f":
                yield Sample(cls(), (cases.special(dtype),))

    @classmethod
    def _moved(cls, x: Array) -> Array:
        """Normal numbers moved into the domain."""
        if x.dtype.kind != "f":
            return x
        low, high = cls.domain
        return np.asarray(low + (high - low) * formulas.sigmoid(wide(x)), x.dtype)


class _Numeric(Unary):
    """A function of floats and integers."""

    allowed = NUMBERS
    tested: ClassVar[tuple[str, ...]] = (
        *Unary.tested,
        "int64",
        "int32",
        "int8",
    )


class Neg(_Numeric, name="neg"):
    """``-x``."""

    function = np.negative


class Abs(_Numeric, name="abs"):
    """``|x|``."""

    function = np.abs
    tested = (*_Numeric.tested, "uint8")


class Sign(_Numeric, name="sign"):
    """-1, 0 or 1; NaN stays."""

    function = np.sign


class Sqrt(Unary, name="sqrt"):
    """The square root; NaN below zero."""

    function = np.sqrt
    domain = (0.0, 9.0)


class Reciprocal(Unary, name="reciprocal"):
    """``1 / x``."""

    function = staticmethod(lambda x: 1.0 / x)


class Exp(Unary, name="exp"):
    """e to the power of ``x``."""

    function = np.exp
    domain = (-90.0, 89.0)


class Log(Unary, name="log"):
    """The natural logarithm; NaN below zero."""

    function = np.log
    domain = (0.0, 50.0)


class Sin(Unary, name="sin"):
    """The sine."""

    function = np.sin
    domain = (-30.0, 30.0)


class Cos(Unary, name="cos"):
    """The cosine."""

    function = np.cos
    domain = (-30.0, 30.0)


class Tan(Unary, name="tan"):
    """The tangent."""

    function = np.tan


class Asin(Unary, name="asin"):
    """The inverse sine."""

    function = np.arcsin
    domain = (-1.0, 1.0)


class Acos(Unary, name="acos"):
    """The inverse cosine."""

    function = np.arccos
    domain = (-1.0, 1.0)


class Atan(Unary, name="atan"):
    """The inverse tangent."""

    function = np.arctan


class Sinh(Unary, name="sinh"):
    """The hyperbolic sine."""

    function = np.sinh


class Cosh(Unary, name="cosh"):
    """The hyperbolic cosine."""

    function = np.cosh


class Asinh(Unary, name="asinh"):
    """The inverse hyperbolic sine."""

    function = np.arcsinh


class Acosh(Unary, name="acosh"):
    """The inverse hyperbolic cosine."""

    function = np.arccosh
    domain = (1.0, 9.0)


class Atanh(Unary, name="atanh"):
    """The inverse hyperbolic tangent."""

    function = np.arctanh
    domain = (-1.0, 1.0)


class Erf(Unary, name="erf"):
    """The error function."""

    function = staticmethod(formulas.by_element(math.erf))


class Floor(Unary, name="floor"):
    """The largest whole number that is not larger."""

    function = np.floor


class Ceil(Unary, name="ceil"):
    """The smallest whole number that is not smaller."""

    function = np.ceil


class Round(Unary, name="round"):
    """The nearest whole number; a half goes to the even one."""

    function = np.rint


class Not(Unary, name="not"):
    """True where ``x`` is false."""

    function = np.logical_not
    allowed = BOOLS
    tested = ("bool",)


class BitwiseNot(Unary, name="bitwise_not"):
    """Every bit turned."""

    function = np.invert
    allowed = INTEGERS
    tested = ("int64", "int32", "uint8")


class Isnan(Unary, name="isnan"):
    """Whether ``x`` is not a number."""

    function = np.isnan

    def infer(self, x: TensorType) -> TensorType:
        return super().infer(x).with_dtype(DType.BOOL)

    def reference(self, x: Array) -> Array:
        return np.asarray(np.isnan(x))


class Isinf(Unary, name="isinf"):
    """Whether ``x`` is one of the infinities asked for."""

    function = np.isinf
    positive: bool = True
    negative: bool = True

    def infer(self, x: TensorType) -> TensorType:
        return super().infer(x).with_dtype(DType.BOOL)

    def reference(self, x: Array) -> Array:
        asked = ((x > 0) & self.positive) | ((x < 0) & self.negative)
        return np.asarray(np.isinf(x) & asked)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield from super().samples()
        for positive, negative in ((True, False), (False, True), (False, False)):
            yield Sample(cls(positive, negative), (cases.special(),))
