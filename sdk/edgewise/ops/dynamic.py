"""Ops whose results are as large as their input's values say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import BOOLS, NUMBERS, want, want_shape
from edgewise.types import DType, TensorType


class NonZero(Op, name="non_zero"):
    """Indices of the elements that are not 0: ``size`` columns, a row an axis."""

    dynamic = True
    size: Dim

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS | BOOLS)
        return TensorType(DType.I64, (x.rank, self.size))

    def reference(self, x: Array) -> Array:
        if not x.ndim:  # numpy counts no axes as one
            return np.zeros((0, int(x != 0)), np.int64)
        return np.asarray(np.nonzero(x), np.int64)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for array in (
            np.asarray([0, 3, 0, -1], "f4"),
            np.asarray([[np.nan, 0], [-0.0, 1]], "f4"),
            cases.bools(3, 4),
            np.zeros((0, 3), "i8"),
            np.asarray(5),
            np.asarray(0),
        ):
            size = int(np.count_nonzero(array))
            yield Sample(NonZero(size), (array,))


class Permute(Op, name="permute"):
    """Axis j of the output is axis ``order[j]`` of the input, as only the run knows."""

    dynamic = True
    sizes: tuple[Dim, ...]

    def infer(self, x: TensorType, order: TensorType) -> TensorType:
        want(self, (order,), frozenset({DType.I64}))
        want_shape(self, "order", order, x.rank)
        if len(self.sizes) != x.rank:
            raise self.refuse((x,), f"{len(self.sizes)} axes")
        return x.with_shape(self.sizes)

    def reference(self, x: Array, order: Array) -> Array:
        axes = order.tolist()
        if sorted(axes) != list(range(x.ndim)):
            raise self.refuse((axes,), f"each axis of {x.ndim} once")
        return np.transpose(x, axes).copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, order in (((), ()), ((7,), (0,)), ((2, 0, 3), (2, 0, 1))):
            sizes = tuple(shape[axis] for axis in order)
            axes = np.asarray(order, np.int64)
            yield Sample(Permute(sizes), (cases.floats(*shape), axes))
