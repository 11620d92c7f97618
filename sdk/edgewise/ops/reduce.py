"""Many elements to one: sums and their kin, along axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from edgewise.dims import Shape
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import BOOLS, NUMBERS, want, want_axis, wide
from edgewise.ops.order import Argmax, Argmin, Cumsum, TopK
from edgewise.types import DType, TensorType

__all__ = [
    "Argmax",
    "Argmin",
    "Cumsum",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "TopK",
]

Axes = tuple[int, ...]


class Reduction(Op):
    """A numpy function of what lies along ``axes``; with no axes, of each element.

    Class Attributes:
        function: Of (array, axes), keeping the axes with size 1; floats come in double
            precision.
        allowed: Element types it takes.
    """

    function: ClassVar[Callable[..., Any]]
    allowed: ClassVar[frozenset[DType]] = NUMBERS
    axes: tuple[int, ...]
    keepdims: bool = True

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), self.allowed)
        if len(set(self.axes)) != len(self.axes):
            raise self.refuse((x,), f"each axis once, not {self.axes}")
        for axis in self.axes:
            want_axis(self, axis, x.rank)
        return x.with_shape(self._shape(x.shape))

    def _shape(self, shape: Shape) -> Shape:
        if self.keepdims:
            return tuple(1 if j in self.axes else dim for j, dim in enumerate(shape))
        return tuple(dim for j, dim in enumerate(shape) if j not in self.axes)

    def reference(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            kept = np.asarray(type(self).function(wide(x), self.axes))
            shape = kept.shape if self.keepdims else self._shape(x.shape)
            return kept.astype(x.dtype).reshape(shape)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for shape, axes in (
            ((7,), (0,)),
            ((17,), ()),
            ((3, 17), (1,)),
            ((33, 5), (0,)),
            ((2, 3, 5), (0, 2)),
            ((2, 3, 5), (1,)),
            ((2, 4, 5, 3), (1, 2)),
            ((2, 4, 5, 3), (0, 1, 2, 3)),
            ((0, 3), (0,)),
            ((0, 3), (1,)),
        ):
            yield Sample(cls(axes, True), (cases.floats(*shape),))
            yield Sample(cls(axes, False), (cases.floats(*shape),))
        bad = cases.floats(4, 5)
        bad[0, 1], bad[1, 2], bad[2, 3] = np.nan, np.inf, -np.inf
        yield Sample(cls((1,)), (bad,))
        yield Sample(cls((1,)), (cases.floats(3, 17, dtype="float64"),))
        for dtype in ("int64", "int32"):
            yield Sample(cls((1,)), (cases.whole(3, 7, dtype=dtype, low=1),))


def _sum(x: Array, axes: Axes) -> Array:
    return np.asarray(np.sum(x, axis=axes, keepdims=True))


def _square_sum(x: Array, axes: Axes) -> Array:
    return _sum(np.square(x), axes)


def _mean(x: Array, axes: Axes) -> Array:
    count = int(np.prod([x.shape[axis] for axis in axes]))
    total = _sum(x, axes)
    if x.dtype.kind not in "iu":
        return total / count if count else np.full_like(total, np.nan)
    return np.asarray(np.trunc(total / max(count, 1)))


def _lowest(x: Array) -> float:
    return -np.inf if x.dtype.kind == "f" else _bounds(x)[0]


def _highest(x: Array) -> float:
    return np.inf if x.dtype.kind == "f" else _bounds(x)[1]


def _bounds(x: Array) -> tuple[int, int]:
    if x.dtype.kind == "b":
        return 0, 1
    info = np.iinfo(x.dtype)
    return int(info.min), int(info.max)


def _max(x: Array, axes: Axes) -> Array:
    peak = np.max(x, axis=axes, keepdims=True, initial=x.dtype.type(_lowest(x)))
    return np.asarray(peak)


def _min(x: Array, axes: Axes) -> Array:
    least = np.min(x, axis=axes, keepdims=True, initial=x.dtype.type(_highest(x)))
    return np.asarray(least)


def _log_sum_exp(x: Array, axes: Axes) -> Array:
    x = x.astype(np.float64)
    peak = _max(x, axes)
    base = np.where(np.isfinite(peak), peak, 0.0)
    return np.asarray(base + np.log(_sum(np.exp(x - base), axes)))


class ReduceSum(Reduction, name="reduce_sum"):
    """The sum."""

    function = staticmethod(_sum)


class ReduceMean(Reduction, name="reduce_mean"):
    """The mean; of integers, truncated; NaN of nothing."""

    function = staticmethod(_mean)


class ReduceMax(Reduction, name="reduce_max"):
    """The largest, NaN if there is one; of nothing the lowest value of the type."""

    function = staticmethod(_max)
    allowed = NUMBERS | BOOLS


class ReduceMin(Reduction, name="reduce_min"):
    """The smallest, NaN if there is one; of nothing the highest value of the type."""

    function = staticmethod(_min)
    allowed = NUMBERS | BOOLS


class ReduceProd(Reduction, name="reduce_prod"):
    """The product."""

    function = staticmethod(lambda x, axes: np.prod(x, axis=axes, keepdims=True))


class ReduceL1(Reduction, name="reduce_l1"):
    """The sum of absolute values."""

    function = staticmethod(lambda x, axes: _sum(np.abs(x), axes))


class ReduceL2(Reduction, name="reduce_l2"):
    """The root of the sum of squares."""

    function = staticmethod(lambda x, axes: np.sqrt(_square_sum(x, axes)))


class ReduceLogSum(Reduction, name="reduce_log_sum"):
    """The logarithm of the sum."""

    function = staticmethod(lambda x, axes: np.log(_sum(x, axes)))


class ReduceLogSumExp(Reduction, name="reduce_log_sum_exp"):
    """The logarithm of the sum of exponentials, moved so that none overflows."""

    function = staticmethod(_log_sum_exp)


class ReduceSumSquare(Reduction, name="reduce_sum_square"):
    """The sum of squares."""

    function = staticmethod(_square_sum)
