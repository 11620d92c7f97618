"""Tensors made of sizes and scalars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import integers, want_shape
from edgewise.types import DType, TensorType


class Fill(Op, name="fill"):
    """One scalar everywhere."""

    shape: tuple[Dim, ...]

    def infer(self, value: TensorType) -> TensorType:
        want_shape(self, "value", value)
        return value.with_shape(self.shape)

    def reference(self, value: Array) -> Array:
        return np.full(integers(self, self.shape), value[()], value.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((), (0,), (7,), (3, 17)):
            yield Sample(Fill(shape), (cases.floats(),))
        yield Sample(Fill((5,)), (cases.whole(),))
        yield Sample(Fill((5,)), (cases.bools(),))
        yield Sample(Fill((5,)), (np.asarray(np.nan, "f4"),))


class Arange(Op, name="arange"):
    """``start``, ``start + step``, …: ``count`` of them."""

    start: Dim
    count: Dim
    step: int = 1

    def infer(self) -> TensorType:
        if isinstance(self.count, int) and self.count < 0:
            raise self.refuse((), f"a count from 0 on, not {self.count}")
        ends = (self.start, self.start + self.step * self.count)
        if any(isinstance(end, int) and abs(end) >= 2**63 for end in ends):
            raise self.refuse((), f"numbers of 64 bits: {self}")
        return TensorType(DType.I64, (self.count,))

    def reference(self) -> Array:
        start, count = integers(self, (self.start, self.count))
        return start + self.step * np.arange(count, dtype=np.int64)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for start, count, step in ((0, 0, 1), (0, 7, 1), (-3, 17, 2), (5, 4, -3)):
            yield Sample(Arange(start, count, step), ())


class DimValue(Op, name="dim_value"):
    """Sizes as an i64 vector, or the one size as a scalar."""

    dims: tuple[Dim, ...]
    scalar: bool = False

    def infer(self) -> TensorType:
        if self.scalar and len(self.dims) != 1:
            raise self.refuse(self.dims, "one size for a scalar")
        return TensorType(DType.I64, () if self.scalar else (len(self.dims),))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The sizes in 64 bits: as in all arithmetic of tensors, what exceeds wraps."""
        sizes = integers(self, self.dims)
        return tuple((size + (1 << 63)) % (1 << 64) - (1 << 63) for size in sizes)

    def reference(self) -> Array:
        sizes = self.numbers
        return np.asarray(sizes[0] if self.scalar else sizes, np.int64)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for dims in ((), (3,), (1, 0, 7)):
            yield Sample(DimValue(dims), ())
        yield Sample(DimValue((5,), scalar=True), ())
