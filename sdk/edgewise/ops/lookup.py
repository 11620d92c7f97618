"""Values looked up by key, as the classic machine-learning operators do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from edgewise.errors import SHAPE_MISMATCH, DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.checks import (
    BOOLS,
    NUMBERS,
    STRINGS,
    same_dtype,
    stopped,
    want,
    want_shape,
)
from edgewise.ops.text import texts
from edgewise.types import DType, TensorType

_NAN = object()  # all NaN are one key


def _keys(array: Array) -> Iterator[Hashable]:
    items: Iterable[Any] = array.ravel().tolist()
    return (_NAN if item != item else item for item in items)  # noqa: PLR0124 - a NaN


class LookUp(Op, name="look_up"):
    """``values`` where ``x`` equals the key beside them, else ``default``.

    Of equal keys the last counts; every NaN equals every other.
    """

    def infer(
        self, x: TensorType, keys: TensorType, values: TensorType, default: TensorType
    ) -> TensorType:
        want(self, (x, keys, values, default), NUMBERS | BOOLS | STRINGS)
        same_dtype(self, x, keys)
        same_dtype(self, values, default)
        want_shape(self, "default", default)
        if keys.rank != 1:
            raise self.refuse((x, keys), "a vector of keys")
        want_shape(self, "values", values, *keys.shape)
        return values.with_shape(x.shape)

    def reference(self, x: Array, keys: Array, values: Array, default: Array) -> Array:
        known = dict(zip(_keys(keys), values, strict=True))
        found = np.empty(x.size, values.dtype)
        for index, key in enumerate(_keys(x)):
            found[index] = known.get(key, default[()])
        return found.reshape(x.shape)

    @staticmethod
    def samples() -> Iterator[Sample]:
        days, names = np.asarray([1, 2, 2]), texts(["mon", "tue", "wed"])
        other = texts(["?"], ())
        yield Sample(LookUp(), (np.asarray([[2, 1], [0, 7]]), days, names, other))
        yield Sample(LookUp(), (names, names, days, np.asarray(-1)))
        yield Sample(LookUp(), (texts([]), names, days, np.asarray(-1)))
        keys = np.asarray([np.nan, 0, np.inf], "f4")
        values = np.asarray([1, 2, 3], "f4")
        x = np.asarray([-0.0, np.nan, np.inf, 5], "f4")
        yield Sample(LookUp(), (x, keys, values, np.asarray(-1, "f4")))


class OneOf(Op, name="one_of"):
    """1 at the category that ``x`` is, along a new last axis; else 0.

    Attributes:
        zeros: Whether what is no category makes zeros; otherwise it ends the run.
    """

    zeros: bool = True

    def infer(self, x: TensorType, categories: TensorType) -> TensorType:
        want(self, (x, categories), NUMBERS | STRINGS)
        if (x.dtype in STRINGS) != (categories.dtype in STRINGS):
            raise DTypeError(f"{self.name}: got {x} and {categories}; want one kind")
        if categories.rank != 1:
            raise self.refuse((x, categories), "a vector of categories")
        return TensorType(DType.F32, (*x.shape, *categories.shape))

    def reference(self, x: Array, categories: Array) -> Array:
        hot = np.asarray(x[..., None] == categories)
        if not self.zeros and not hot.any(-1).all():
            raise stopped(self, SHAPE_MISMATCH)
        return hot.astype(np.float32)

    @staticmethod
    def samples() -> Iterator[Sample]:
        yield Sample(OneOf(), (np.asarray([[3, 1], [7, 1]]), np.asarray([1, 3])))
        yield Sample(OneOf(zeros=False), (texts(["b", "a"]), texts(["a", "b"])))
        yield Sample(OneOf(), (np.zeros((0, 2), "i8"), np.asarray([1, 3])))
