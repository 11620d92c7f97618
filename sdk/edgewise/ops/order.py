"""Where the largest elements are, the k largest, running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import NUMBERS, integers, want, want_axis, wide
from edgewise.types import DType, TensorType

EQUAL = np.asarray([[1, 3, 3, 2], [2, 2, 2, 2], [5, 1, 1, 5]], "f4")


class _Arg(Op):
    """The index of an extreme element; the first of equal ones, or the last."""

    axis: int
    keepdims: bool = True
    last: bool = False

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS)
        want_axis(self, self.axis, x.rank)
        if x.shape[self.axis] == 0:
            raise self.refuse((x,), f"elements along axis {self.axis}")
        kept = (1,) if self.keepdims else ()
        shape = (*x.shape[: self.axis], *kept, *x.shape[self.axis + 1 :])
        return TensorType(DType.I64, shape)

    def found(self, x: Array, *, largest: bool) -> Array:
        """Index of the extreme element; NaN counts as extreme, as in numpy."""
        pick = np.argmax if largest else np.argmin
        seen = np.flip(x, self.axis) if self.last else x
        index = pick(seen, axis=self.axis, keepdims=self.keepdims)
        index = x.shape[self.axis] - 1 - index if self.last else index
        return np.asarray(index, np.int64)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for shape in ((1,), (7,), (3, 17), (2, 3, 5), (0, 3)):
            for axis in range(len(shape)):
                if shape[axis]:
                    yield Sample(cls(axis), (cases.floats(*shape),))
        for keepdims in (True, False):
            for last in (True, False):
                yield Sample(cls(1, keepdims, last), (EQUAL,))
        for dtype in ("int64", "int32", "uint8", "float64"):
            yield Sample(cls(0), (cases.whole(7, dtype=dtype),))


class Argmax(_Arg, name="argmax"):
    """The index of the largest element."""

    def reference(self, x: Array) -> Array:
        return self.found(x, largest=True)


class Argmin(_Arg, name="argmin"):
    """The index of the smallest element."""

    def reference(self, x: Array) -> Array:
        return self.found(x, largest=False)


class _Running(Op):
    """What the elements so far come to, with the last or without, from either end.

    Class Attributes:
        accumulate: The numpy function along an axis.
        neutral: What nothing comes to.
    """

    accumulate: ClassVar[Callable[..., Any]]
    neutral: ClassVar[int]
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS)
        want_axis(self, self.axis, x.rank)
        return x

    def reference(self, x: Array) -> Array:
        ordered = np.flip(wide(x), self.axis) if self.reverse else wide(x)
        with np.errstate(all="ignore"):
            if self.exclusive:
                shifted = np.full_like(ordered, self.neutral)
                along = np.moveaxis(shifted, self.axis, 0)
                along[1:] = np.moveaxis(ordered, self.axis, 0)[:-1]
                ordered = shifted
            total = type(self).accumulate(ordered, axis=self.axis)
            total = np.flip(total, self.axis) if self.reverse else total
            return np.asarray(total.astype(x.dtype))

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for exclusive in (False, True):
            for reverse in (False, True):
                for shape, axis in (((7,), 0), ((0,), 0), ((3, 5), 0), ((2, 3, 17), 2)):
                    op = cls(axis, exclusive, reverse)
                    yield Sample(op, (cases.floats(*shape),))
        for dtype in ("int64", "int32", "float64"):
            yield Sample(cls(0), (cases.whole(9, dtype=dtype),))
        yield Sample(cls(0), (np.asarray([1, np.inf, 2, -np.inf, 3], "f4"),))


class Cumsum(_Running, name="cumsum"):
    """Running sums along an axis."""

    accumulate = np.cumsum
    neutral = 0


class Cumprod(_Running, name="cumprod"):
    """Running products along an axis."""

    accumulate = np.cumprod
    neutral = 1


class TopK(Op, name="top_k"):
    """The k largest (or smallest) elements in order, and their indices.

    Of equal elements the one with the lower index comes first; NaN counts as larger
    than any number.
    """

    k: Dim
    axis: int
    largest: bool = True

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        want(self, (x,), NUMBERS)
        want_axis(self, self.axis, x.rank)
        size = x.shape[self.axis]
        left = size - self.k
        if any(isinstance(count, int) and count < 0 for count in (self.k, left)):
            raise self.refuse((x,), f"at least {self.k} elements along {self.axis}")
        shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        return x.with_shape(shape), TensorType(DType.I64, shape)

    def reference(self, x: Array) -> tuple[Array, ...]:
        if self.largest:
            # Sorted from the back and then turned, equal elements keep their order.
            back = np.argsort(np.flip(x, self.axis), axis=self.axis, kind="stable")
            order = np.flip(x.shape[self.axis] - 1 - back, self.axis)
        else:
            order = np.argsort(x, axis=self.axis, kind="stable")
        (k,) = integers(self, (self.k,))
        index = np.take(order, np.arange(k), axis=self.axis).astype(np.int64)
        return np.take_along_axis(x, index, axis=self.axis), index

    @staticmethod
    def samples() -> Iterator[Sample]:
        for largest in (True, False):
            for shape, axis, k in (
                ((1,), 0, 1),
                ((7,), 0, 3),
                ((7,), 0, 0),
                ((3, 17), 1, 17),
                ((5, 3), 0, 2),
                ((2, 9, 3), 1, 4),
            ):
                yield Sample(TopK(k, axis, largest), (cases.floats(*shape),))
            yield Sample(TopK(3, 1, largest), (EQUAL,))
            extreme = np.asarray([1, np.inf, -np.inf, 0, np.nan, 2], "f4")
            yield Sample(TopK(4, 0, largest), (extreme,))
            for dtype in ("int64", "int32", "uint8"):
                yield Sample(TopK(3, 0, largest), (cases.extremes(dtype),))
