"""Exact products of small integers, and their way back to small integers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, broadcast, want, want_broadcast, want_shape
from edgewise.ops.matmul import InnerProducts, product_shape
from edgewise.ops.windows import OverWindows
from edgewise.types import DType, TensorType

BYTES = frozenset({DType.I8, DType.U8})
RANGES = frozenset({DType.I8, DType.U8, DType.I16, DType.U16, DType.I32})


def _centred(x: Array, zero: Array | None, terms: int) -> Array:
    """``x - zero`` as floats that hold every sum of so many products exactly."""
    kind = np.float32 if terms * 255 * 255 < 1 << 24 else np.float64
    floats = x.astype(kind)
    return floats if zero is None else floats - zero.astype(kind)


def _wrapped(total: Array) -> Array:
    """Whole doubles as i32, modulo 2 ** 32 as the hardware's adders have it."""
    return total.astype(np.int64).astype(np.int32)


class MatmulInteger(InnerProducts, name="matmul_integer"):
    """``(a - a_zero) @ (b - b_zero)`` in i32; the zeros broadcast over the operands."""

    def infer(
        self,
        a: TensorType,
        b: TensorType,
        a_zero: TensorType | None = None,
        b_zero: TensorType | None = None,
    ) -> TensorType:
        want(self, (a, b, a_zero, b_zero), BYTES)
        shape = product_shape(self, a, b)
        want_broadcast(self, "a_zero", a_zero, a.shape)
        want_broadcast(self, "b_zero", b_zero, b.shape)
        return TensorType(DType.I32, shape)

    def reference(
        self,
        a: Array,
        b: Array,
        a_zero: Array | None = None,
        b_zero: Array | None = None,
    ) -> Array:
        terms = a.shape[-1]
        return _wrapped(_centred(a, a_zero, terms) @ _centred(b, b_zero, terms))

    @staticmethod
    def samples() -> Iterator[Sample]:
        op = MatmulInteger()
        for left, right in (((3, 5), (5, 2)), ((2, 1, 7), (7, 17)), ((0, 3), (3, 4))):
            for kinds in (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")):
                pairs = zip((left, right), kinds, strict=True)
                a, b = (_bytes(*s, dtype=d) for s, d in pairs)
                yield Sample(op, (a, b))
                zeros = [np.asarray(3, kind) for kind in kinds]
                yield Sample(op, (a, b, *zeros))
        full = np.full((2, 64), 255, "uint8"), np.full((64, 3), -128, "int8")
        rows, columns = _bytes(2, 1, dtype="uint8"), _bytes(3, dtype="int8")
        yield Sample(op, (*full, rows, columns))


class ConvInteger(OverWindows, name="conv_integer"):
    """Windows of ``x[N, ..., C]`` by ``w[O, C / groups, ...]``, less zeros, in i32.

    What the pads add stands for zero.  ``w_zero`` is one number, or one per output.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        x_zero: TensorType | None = None,
        w_zero: TensorType | None = None,
    ) -> TensorType:
        want(self, (x, w, x_zero, w_zero), BYTES)
        axes = len(self.kernel)
        if w.rank != axes + 2 or not axes or self.groups < 1:
            raise self.refuse((x, w), f"a weight [O, C / groups, ...] for {self!r}")
        outputs = w.shape[0]
        shape = self.window.shape(self, x, outputs, axes)
        inputs = w.shape[1] * self.groups
        want_shape(self, "x", x, *x.shape[:-1], inputs)
        want_shape(self, "weight", w, outputs, w.shape[1], *self.kernel)
        if isinstance(outputs, int) and outputs % self.groups:
            raise self.refuse((x, w), f"outputs in {self.groups} equal groups")
        want_shape(self, "x_zero", x_zero)
        if w_zero is not None and w_zero.rank:
            want_shape(self, "w_zero", w_zero, outputs)
        return TensorType(DType.I32, shape)

    def reference(
        self,
        x: Array,
        w: Array,
        x_zero: Array | None = None,
        w_zero: Array | None = None,
    ) -> Array:
        if w_zero is not None and w_zero.ndim:
            w_zero = w_zero.reshape(-1, *(1,) * (w.ndim - 1))
        terms = math.prod(w.shape[1:])
        padded = self.window.padded(_centred(x, x_zero, terms), 0.0)
        weight = _centred(w, w_zero, terms).reshape(
            *w.shape[:2], math.prod(self.kernel)
        )
        images = np.split(padded, self.groups, axis=-1)
        groups = zip(images, np.split(weight, self.groups), strict=True)
        return _wrapped(np.concatenate([self._sum(*pair) for pair in groups], axis=-1))

    def _sum(self, padded: Array, weight: Array) -> Array:
        taps = zip(self.window.taps(padded), np.moveaxis(weight, 2, 0), strict=True)
        return np.asarray(sum(seen @ matrix.T for seen, matrix in taps))

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        taps = math.prod(inputs[1].dims[1:]) if inputs[1] else 0
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * taps, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        x, w = _bytes(2, 5, 6, 4, dtype="uint8"), _bytes(6, 4, 3, 2, dtype="int8")
        zeros = np.asarray(130, "uint8"), _bytes(6, dtype="int8")
        plane = (1, 2), (1, 0, 1, 1), (2, 1)
        yield Sample(ConvInteger((3, 2), *plane), (x, w))
        yield Sample(ConvInteger((3, 2), *plane), (x, w, *zeros))
        yield Sample(ConvInteger((3, 2), *plane, 2), (x, w[:, :2], *zeros))
        yield Sample(ConvInteger((3, 2), *plane), (x[:0], w, None, zeros[1]))
        line = ConvInteger((3,), (1,), (1, 1), (1,))
        yield Sample(line, (x[0], w[:, :, :, 0], zeros[0]))
        yield Sample(ConvInteger((3, 2), *plane), (x, w[:0], zeros[0]))
        cube = ConvInteger((1, 3, 2), (1, 1, 1), (0,) * 6, (1, 1, 1), 4)
        yield Sample(cube, (x[None], _bytes(8, 1, 1, 3, 2, dtype="uint8")))


class Requantize(Op, name="requantize"):
    """``round(x * scale) + zero`` held in the type of ``zero``, ties to even.

    ``scale`` broadcasts; the product is taken in double precision, where it is exact.
    """

    def infer(self, x: TensorType, scale: TensorType, zero: TensorType) -> TensorType:
        want(self, (x,), frozenset({DType.I32}))
        want(self, (scale,), FLOATS)
        want(self, (zero,), RANGES)
        shape = broadcast(self, x.shape, scale.shape)
        want_broadcast(self, "zero", zero, shape)
        return TensorType(zero.dtype, shape)

    def reference(self, x: Array, scale: Array, zero: Array) -> Array:
        info = np.iinfo(zero.dtype)
        with np.errstate(all="ignore"):
            steps = np.rint(x.astype(np.float64) * scale.astype(np.float64))
        moved = np.where(np.isnan(steps), 0.0, steps) + zero
        return np.asarray(np.clip(moved, info.min, info.max).astype(zero.dtype))

    @staticmethod
    def samples() -> Iterator[Sample]:
        op, sums = Requantize(), cases.whole(2, 3, 5, dtype="int32", low=-999, high=999)
        for dtype in ("int8", "uint8", "int16"):
            zero = np.asarray(7, dtype)
            yield Sample(op, (sums, np.asarray(0.125, "f4"), zero))
            yield Sample(op, (sums, cases.positive(5), zero))
            yield Sample(op, (cases.extremes("int32"), np.asarray(1, "f4"), zero))
            yield Sample(op, (sums[:0], cases.positive(3, 1), zero))
        ties = cases.whole(9, dtype="int32", low=-9, high=9)
        yield Sample(op, (ties, np.asarray(0.5, "f4"), np.asarray(0, "int8")))
        bad = np.asarray([np.nan, np.inf, -np.inf], "f4")
        yield Sample(op, (np.ones(3, "i4"), bad, np.asarray(5, "uint8")))


def _bytes(*shape: int, dtype: str) -> Array:
    info = np.iinfo(dtype)
    return cases.whole(*shape, dtype=dtype, low=info.min, high=info.max + 1)
