"""Elements by index: gathering, scattering, one-hot rows, triangles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    INDICES,
    INTEGERS,
    integers,
    may_equal,
    resolved,
    want,
    want_axis,
    want_shape,
)
from edgewise.ops.create import Arange, DimValue, Fill
from edgewise.ops.scatter import ScatterElements, ScatterNd
from edgewise.types import TensorType

__all__ = [
    "Arange",
    "DimValue",
    "Fill",
    "Gather",
    "GatherElements",
    "GatherNd",
    "OneHot",
    "ScatterElements",
    "ScatterNd",
    "Triangle",
]


class Gather(Op, name="gather"):
    """Slices of ``x`` along ``axis``, one for every index."""

    axis: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        want(self, (indices,), INDICES)
        want_axis(self, self.axis, x.rank)
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        return x.with_shape((*before, *indices.shape, *after))

    def reference(self, x: Array, indices: Array) -> Array:
        index = resolved(self, indices, x.shape[self.axis])
        return np.asarray(np.take(x, index, axis=self.axis))

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis, indices in (
            ((7,), 0, np.asarray(-7)),
            ((7,), 0, np.asarray([6, 0, -1])),
            ((17, 3), 0, np.asarray([[16, 0], [3, -2]])),
            ((3, 17), 1, np.asarray([5, 5, 16])),
            ((2, 9, 5), 1, np.asarray([[8], [0], [-9]])),
            ((2, 3, 5), 2, np.asarray(4)),
            ((4, 3), 0, np.zeros((0,), np.int64)),
        ):
            yield Sample(Gather(axis), (cases.floats(*shape), indices))
        short = np.asarray([2, -1, 0], np.int32)
        yield Sample(Gather(0), (cases.floats(3, 33), short))
        yield Sample(Gather(0), (cases.whole(3), short))
        yield Sample(Gather(0), (cases.bools(3), short))


class GatherElements(Op, name="gather_elements"):
    """For every index the element at its place, moved to the index along ``axis``."""

    axis: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        want(self, (indices,), INDICES)
        want_axis(self, self.axis, x.rank)
        if indices.rank != x.rank or not within(indices, x, self.axis):
            raise self.refuse((x, indices), f"no larger size but along {self.axis}")
        return x.with_shape(indices.shape)

    def reference(self, x: Array, indices: Array) -> Array:
        places: list[Array] = list(np.indices(indices.shape, sparse=True))
        places[self.axis] = resolved(self, indices, x.shape[self.axis])
        return np.asarray(x[tuple(places)])

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis, picked in (
            ((7,), 0, (3,)),
            ((3, 5), 0, (7, 5)),
            ((3, 5), 1, (2, 4)),
            ((2, 3, 5), 1, (2, 9, 1)),
            ((3, 5), 1, (3, 0)),
        ):
            size = shape[axis]
            indices = cases.whole(*picked, low=-size, high=size)
            yield Sample(GatherElements(axis), (cases.floats(*shape), indices))
            yield Sample(
                GatherElements(axis), (cases.whole(*shape), indices.astype(np.int32))
            )


class GatherNd(Op, name="gather_nd"):
    """Slices of ``x`` by tuples of indices, the last axis of ``indices``."""

    batch_dims: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        want(self, (indices,), INDICES)
        batch = self.batch_dims
        depth = indices.shape[-1] if indices.rank > batch else x.rank + 1
        if batch < 0 or not isinstance(depth, int) or batch + depth > x.rank:
            raise self.refuse((x, indices), "no more indices than axes")
        if not all(map(may_equal, x.shape[:batch], indices.shape[:batch])):
            raise self.refuse((x, indices), f"{batch} equal batch axes")
        return x.with_shape((*indices.shape[:-1], *x.shape[batch + depth :]))

    def reference(self, x: Array, indices: Array) -> Array:
        batch, depth = self.batch_dims, indices.shape[-1]
        rank = indices.ndim - 1
        places = [
            grid.reshape(grid.shape[:rank])
            for grid in np.indices((*indices.shape[:-1],), sparse=True)
        ][:batch]
        places += [
            resolved(self, indices[..., j], x.shape[batch + j]) for j in range(depth)
        ]
        if not places:
            return np.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()
        return np.asarray(x[tuple(places)])

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, batch, indices in (
            ((7,), 0, [[0], [-1], [3]]),
            ((3, 5), 0, [[0, 4], [-1, -5]]),
            ((3, 5), 0, [[2], [0]]),
            ((2, 3, 5), 0, [[[1, 2]], [[0, -1]]]),
            ((2, 3, 5), 1, [[2], [0]]),
            ((2, 3, 5), 1, [[[2, 1], [0, 0]], [[1, 4], [-1, -1]]]),
            ((2, 3, 5), 2, [[[1], [2], [3]], [[4], [0], [-1]]]),
        ):
            array = np.asarray(indices, np.int64)
            yield Sample(GatherNd(batch), (cases.floats(*shape), array))
            yield Sample(GatherNd(batch), (cases.whole(*shape), array.astype("i4")))


def within(inner: TensorType, outer: TensorType, axis: int) -> bool:
    """Whether no known size of ``inner`` is larger, but along ``axis``."""
    pairs = zip(inner.shape, outer.shape, strict=True)
    return all(
        j == axis or not (isinstance(a, int) and isinstance(b, int)) or a <= b
        for j, (a, b) in enumerate(pairs)
    )


class OneHot(Op, name="one_hot"):
    """``values[1]`` at the index along a new axis of ``depth``, else ``values[0]``.

    Negative indices count from the end; one out of range makes no element hot.
    """

    depth: Dim
    axis: int

    def infer(self, indices: TensorType, values: TensorType) -> TensorType:
        want(self, (indices,), INTEGERS)
        want_axis(self, self.axis, indices.rank + 1)
        want_shape(self, "values", values, 2)
        shape: list[Dim] = list(indices.shape)
        shape.insert(self.axis, self.depth)
        return values.with_shape(tuple(shape))

    def reference(self, indices: Array, values: Array) -> Array:
        index = np.expand_dims(indices.astype(np.int64), self.axis)
        (depth,) = integers(self, (self.depth,))
        index = np.where(index < 0, index + depth, index)
        shape = [1] * index.ndim
        shape[self.axis] = depth
        places = np.arange(depth).reshape(shape)
        return np.asarray(np.where(index == places, values[1], values[0]))

    @staticmethod
    def samples() -> Iterator[Sample]:
        values = np.asarray([-1, 2], "f4")
        for shape in ((), (1,), (7,), (3, 5), (0,)):
            for axis in range(len(shape) + 1):
                indices = cases.whole(*shape, low=-6, high=7)
                yield Sample(OneHot(5, axis), (indices, values))
        for dtype in ("int32", "uint8"):
            indices = cases.whole(7, dtype=dtype, low=-6, high=7)
            yield Sample(OneHot(5, 1), (indices, np.asarray([0, 1], "i8")))


class Triangle(Op, name="triangle"):
    """The part of every matrix on and above (or below) its k-th diagonal, else 0."""

    upper: bool
    k: int = 0

    def infer(self, x: TensorType) -> TensorType:
        want_axis(self, 1, x.rank)
        return x

    def reference(self, x: Array) -> Array:
        below = np.tri(x.shape[-2], x.shape[-1], self.k - self.upper, bool)
        nothing = "" if x.dtype == object else np.zeros((), x.dtype)
        return np.where(below ^ self.upper, x, nothing)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for upper in (True, False):
            for k in (0, 2, -1, 99, -99):
                yield Sample(Triangle(upper, k), (cases.floats(5, 7),))
            yield Sample(Triangle(upper, 1), (cases.floats(2, 3, 3),))
            yield Sample(Triangle(upper), (cases.whole(3, 4),))
            yield Sample(Triangle(upper), (cases.floats(0, 3),))
            yield Sample(Triangle(upper), (np.full((2, 2), np.nan, "f4"),))
