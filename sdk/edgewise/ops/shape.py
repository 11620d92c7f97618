"""Ops that move elements and compute none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim, Expr, product
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    broadcast,
    integers,
    may_equal,
    same_dtype,
    want_axis,
)
from edgewise.ops.pad import (
    Pad,
)
from edgewise.types import TensorType

__all__ = [
    "Concat",
    "Expand",
    "Pad",
    "Reshape",
    "Slice",
    "Tile",
    "Transpose",
]


class Reshape(Op, name="reshape"):
    """The same elements, in order, under another shape."""

    view = True
    shape: tuple[Dim, ...]

    def infer(self, x: TensorType) -> TensorType:
        change = product(self.shape) - x.elements
        if change != 0 and isinstance(change, int):
            raise self.refuse((x,), f"as many elements as {list(self.shape)} has")
        return x.with_shape(self.shape)

    def reference(self, x: Array) -> Array:
        return x.reshape(integers(self, self.shape)).copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        cases_ = (((2, 6), (3, 4)), ((7,), (1, 7, 1)), ((1,), ()), ((0, 3), (5, 0)))
        for before, after in cases_:
            yield Sample(Reshape(after), (cases.floats(*before),))
        yield Sample(Reshape((3, 4)), (cases.whole(12),))
        yield Sample(Reshape((4, 1)), (cases.bools(4),))


class Transpose(Op, name="transpose"):
    """Axis j of the output is axis ``axes[j]`` of the input."""

    axes: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        if sorted(self.axes) != list(range(x.rank)):
            raise self.refuse((x,), f"the axes {list(self.axes)}, each once")
        return x.with_shape(tuple(x.shape[axis] for axis in self.axes))

    def reference(self, x: Array) -> Array:
        return x.transpose(self.axes).copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axes in (
            ((), ()),
            ((7,), (0,)),
            ((17, 33), (1, 0)),
            ((2, 3, 5), (0, 2, 1)),
            ((2, 3, 5), (2, 0, 1)),
            ((2, 3, 4, 5), (0, 2, 3, 1)),
            ((2, 4, 5, 3), (0, 3, 1, 2)),
            ((2, 1, 3, 2, 4), (4, 2, 0, 1, 3)),
            ((0, 3), (1, 0)),
        ):
            yield Sample(Transpose(axes), (cases.floats(*shape),))
        yield Sample(Transpose((1, 0)), (cases.whole(5, 7),))
        yield Sample(Transpose((1, 0)), (cases.bools(3, 2),))


class Concat(Op, name="concat"):
    """The inputs one after the other along an axis."""

    axis: int

    def infer(self, *xs: TensorType) -> TensorType:
        if not xs:
            raise self.refuse(xs, "one input at least")
        same_dtype(self, *xs)
        want_axis(self, self.axis, xs[0].rank)
        shape = list(xs[0].shape)
        for x in xs[1:]:
            if x.rank != len(shape):
                raise self.refuse(xs, "equal ranks")
            for axis, (a, b) in enumerate(zip(shape, x.shape, strict=True)):
                if axis == self.axis:
                    shape[axis] = a + b
                elif not may_equal(a, b):
                    raise self.refuse(xs, f"equal sizes but for axis {self.axis}")
                elif isinstance(a, Expr):
                    shape[axis] = b
        return xs[0].with_shape(tuple(shape))

    def reference(self, *xs: Array) -> Array:
        return np.concatenate(xs, axis=self.axis)

    @staticmethod
    def samples() -> Iterator[Sample]:
        yield Sample(Concat(0), (cases.floats(7),))
        yield Sample(Concat(0), (cases.floats(1), cases.floats(0), cases.floats(17)))
        for axis, shape in ((0, (2, 3, 5)), (1, (4, 1, 5)), (2, (4, 3, 33))):
            inputs = (cases.floats(4, 3, 5), cases.floats(*shape, seed=1))
            yield Sample(Concat(axis), inputs)
        same = cases.floats(2, 3)
        yield Sample(Concat(1), (same, same, same))
        yield Sample(Concat(0), (cases.whole(3), cases.whole(2, seed=1)))
        yield Sample(Concat(0), (cases.bools(3), cases.bools(5)))


class Slice(Op, name="slice"):
    """Along every axis the elements ``start + j * step``, ``size`` of them."""

    starts: tuple[Dim, ...]
    sizes: tuple[Dim, ...]
    steps: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        lengths = {len(self.starts), len(self.sizes), len(self.steps)}
        if lengths != {x.rank}:
            raise self.refuse((x,), "one start, size and step for every axis")
        ranges = zip(x.shape, self.starts, self.sizes, self.steps, strict=True)
        for dim, start, size, step in ranges:
            self._want_inside(x, dim, start, size, step)
        return x.with_shape(self.sizes)

    def _want_inside(
        self, x: TensorType, dim: Dim, start: Dim, size: Dim, step: int
    ) -> None:
        if isinstance(size, int) and size < 0:
            raise self.refuse((x,), f"sizes from 0 on, not {size}")
        if not isinstance(size, int) or size == 0:
            return
        last = start + (size - 1) * step
        for index in (start, last):
            beyond = index - dim
            low = isinstance(index, int) and index < 0
            if low or (isinstance(beyond, int) and beyond >= 0):
                raise self.refuse((x,), f"elements inside the axis, not {index}")

    def reference(self, x: Array) -> Array:
        starts, sizes = integers(self, self.starts), integers(self, self.sizes)
        for axis, (start, size, step) in enumerate(
            zip(starts, sizes, self.steps, strict=True)
        ):
            x = np.take(x, start + step * np.arange(size), axis=axis)
        return x.copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, starts, sizes, steps in (
            ((), (), (), ()),
            ((17,), (3,), (7,), (1,)),
            ((17,), (16,), (6,), (-3,)),
            ((17,), (0,), (0,), (1,)),
            ((5, 7), (1, 0), (3, 7), (1, 1)),
            ((5, 7), (4, 6), (5, 4), (-1, -2)),
            ((2, 9, 8, 3), (0, 0, 1, 0), (2, 5, 4, 3), (1, 2, 2, 1)),
        ):
            yield Sample(Slice(starts, sizes, steps), (cases.floats(*shape),))
        yield Sample(Slice((1,), (2,), (1,)), (cases.whole(4),))
        yield Sample(Slice((1,), (2,), (1,)), (cases.bools(4),))


class Expand(Op, name="expand"):
    """Copies along axes of size 1, so that the shape is that of both together."""

    shape: tuple[Dim, ...]

    def infer(self, x: TensorType) -> TensorType:
        return x.with_shape(broadcast(self, x.shape, self.shape))

    def reference(self, x: Array) -> Array:
        shape = np.broadcast_shapes(x.shape, integers(self, self.shape))
        return np.broadcast_to(x, shape).copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for before, after in (
            ((1,), (7,)),
            ((), (2, 3)),
            ((3, 1), (3, 17)),
            ((3, 1), (2, 1, 5)),
            ((4,), (1,)),
            ((1, 3), (0, 3)),
        ):
            yield Sample(Expand(after), (cases.floats(*before),))
        yield Sample(Expand((3, 2)), (cases.whole(2),))
        yield Sample(Expand((2, 2)), (cases.bools(2, 1),))


class Tile(Op, name="tile"):
    """The whole input ``repeats`` times along each axis."""

    repeats: tuple[Dim, ...]

    def infer(self, x: TensorType) -> TensorType:
        if len(self.repeats) != x.rank:
            raise self.refuse((x,), "one count of repeats for every axis")
        pairs = zip(x.shape, self.repeats, strict=True)
        return x.with_shape(tuple(dim * count for dim, count in pairs))

    def reference(self, x: Array) -> Array:
        return np.tile(x, integers(self, self.repeats))

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, repeats in (((7,), (3,)), ((2, 5), (3, 1)), ((2, 3, 1), (1, 2, 4))):
            yield Sample(Tile(repeats), (cases.floats(*shape),))
        yield Sample(Tile((0, 2)), (cases.floats(2, 3),))
        yield Sample(Tile((2,)), (cases.whole(3),))
