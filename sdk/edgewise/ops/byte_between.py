"""What lies between products over bytes: bytes in, bytes out.

Numbers that bytes stand for are ``(q - zero) * scale``.  Sums and products of bytes are
exact; what is done to them is done in float32, and becomes a byte as ``quantize`` has
it: nearest, ties to even, held to the type.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.byte_cases import some_bytes
from edgewise.ops.checks import broadcast, same_dtype, want, want_axis, want_shape
from edgewise.ops.integer import BYTES
from edgewise.ops.quantize import limits, rounded
from edgewise.ops.windows import WINDOWS, OverWindows, Window
from edgewise.types import TensorType

KINDS = {kind.value: kind for kind in BYTES}
IMAGE = 4  # axes


class ByteTable(Op, name="byte_table"):
    """``table[x]``, of 256 bytes; below zero, x counts from the end."""

    in_place = (0,)
    narrow = True

    def infer(self, x: TensorType, table: TensorType) -> TensorType:
        want(self, (x, table), BYTES)
        want_shape(self, "table", table, 256)
        return x.with_dtype(table.dtype)

    def reference(self, x: Array, table: Array) -> Array:
        return np.asarray(table[x.astype(np.int64)])

    @staticmethod
    def samples() -> Iterator[Sample]:
        for dtype in ("uint8", "int8"):
            for made in ("uint8", "int8"):
                table = some_bytes(256, dtype=made, seed=5)
                every = np.arange(256).astype(np.uint8).view(dtype)
                yield Sample(ByteTable(), (every, table))
                for shape in ((0,), (1,), (3, 17), (5, 4099), ()):
                    yield Sample(ByteTable(), (some_bytes(*shape, dtype=dtype), table))


class _Made(Op):
    """What makes bytes of numbers in float32.

    Attributes:
        y_type: ``u8`` or ``i8``.
    """

    narrow = True
    y_type: str
    y_scale: float
    y_zero: int

    def made(self, result: TensorType, *pairs: tuple[float, int]) -> TensorType:
        """The output like ``result``, once all scales and zero points are sane.

        ``result`` has the type of what is given, and so have the zero points of it.
        """
        if self.y_type not in KINDS:
            raise self.refuse((result,), f"u8 or i8, not {self.y_type}")
        kind = KINDS[self.y_type]
        types = (kind, *(result.dtype for _ in pairs))
        for (scale, zero), type_ in zip(
            ((self.y_scale, self.y_zero), *pairs), types, strict=True
        ):
            low, high = limits(type_)
            if not (scale > 0 and low <= zero <= high):
                raise self.refuse((result,), "scales above 0 and zero points of bytes")
        return result.with_dtype(kind)

    def whole(self, steps: Array) -> Array:
        """Steps of ``y_scale`` from its zero point as bytes."""
        return rounded(steps, self.y_zero, KINDS[self.y_type])


class _Pair(_Made):
    """Two images of bytes of one type, which broadcast as numpy's do."""

    in_place = (0, 1)
    a_scale: float
    a_zero: int
    b_scale: float
    b_zero: int

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        want(self, (a, b), BYTES)
        same_dtype(self, a, b)
        shape = broadcast(self, a.shape, b.shape)
        pairs = (self.a_scale, self.a_zero), (self.b_scale, self.b_zero)
        return self.made(a.with_shape(shape), *pairs)

    def factors(self) -> tuple[np.float32, np.float32]:
        """What moved bytes of either are times, in steps of the output."""
        single = np.float32
        return single(self.a_scale / self.y_scale), single(self.b_scale / self.y_scale)

    def moved(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Both as whole doubles from their zero points."""
        return a.astype(np.float64) - self.a_zero, b.astype(np.float64) - self.b_zero

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        shapes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
            ((17,), (17,)),
            ((2, 5, 7, 33), (2, 1, 1, 33)),
            ((1, 1, 8), (3, 5, 8)),
            ((4, 9), (4, 1)),
            ((), (19,)),
            ((0, 3), (3,)),
            ((3, 5001), (3, 5001)),
        )
        for dtype, zeros in (("uint8", (3, 128)), ("int8", (-7, 100))):
            for y_type, y_zero in (("u8", 9), ("i8", -128)):
                for scale in (0.07, 0.003):
                    op = cls(y_type, scale, y_zero, 0.05, zeros[0], 0.021, zeros[1])
                    for a, b in shapes:
                        left = some_bytes(*a, dtype=dtype)
                        yield Sample(op, (left, some_bytes(*b, dtype=dtype, seed=1)))


class ByteAdd(_Pair, name="byte_add"):
    """The sum of two images."""

    def reference(self, a: Array, b: Array) -> Array:
        left, right = self.moved(a, b)
        by, plus = self.factors()
        with np.errstate(all="ignore"):
            added = (right.astype(np.float32) * plus).astype(np.float64)
            return self.whole((left * by + added).astype(np.float32))


class ByteMul(_Pair, name="byte_mul"):
    """The product of two images, or of one and its factors."""

    def factor(self) -> np.float32:
        """What products are times, in steps of the output."""
        return np.float32(self.a_scale * self.b_scale / self.y_scale)

    def reference(self, a: Array, b: Array) -> Array:
        left, right = self.moved(a, b)
        with np.errstate(all="ignore"):
            return self.whole((left * right).astype(np.float32) * self.factor())


class _Means(_Made):
    """Means of bytes: sums are exact.

    A mean is its sum times ``x_scale / y_scale`` over the number of what it is of.
    """

    x_scale: float
    x_zero: int

    def ratio(self) -> np.float32:
        """What means of moved bytes are times, in steps of the output."""
        return np.float32(self.x_scale / self.y_scale)

    def mean(self, total: Array, count: Array) -> Array:
        """Of exact sums of moved bytes."""
        with np.errstate(all="ignore"):
            return self.whole(
                total.astype(np.float32) * (self.ratio() / count.astype(np.float32))
            )


class ByteMean(_Means, name="byte_mean"):
    """The mean of each channel of ``x[N, H, W, C]``, as ``[N, 1, 1, C]``."""

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), BYTES)
        want_axis(self, IMAGE - 1, x.rank)
        shape = (x.shape[0], 1, 1, x.shape[3])
        return self.made(x.with_shape(shape), (self.x_scale, self.x_zero))

    def reference(self, x: Array) -> Array:
        total = (x.astype(np.float64) - self.x_zero).sum((1, 2), keepdims=True)
        return self.mean(total, np.asarray(max(x.shape[1] * x.shape[2], 1)))

    @staticmethod
    def samples() -> Iterator[Sample]:
        for size in ((1, 7, 7, 96), (2, 3, 5, 17), (3, 1, 1, 64), (1, 56, 56, 150)):
            for dtype, zero in (("uint8", 3), ("int8", -7)):
                x = some_bytes(*size, dtype=dtype)
                for y_type, y_zero, scale in (("u8", 100, 0.002), ("i8", -20, 0.05)):
                    yield Sample(ByteMean(y_type, scale, y_zero, 0.05, zero), (x,))
        worst = np.full((1, 300, 300, 5), 255, np.uint8)
        yield Sample(ByteMean("u8", 1.0, 0, 1.0, 0), (worst,))
        yield Sample(ByteMean("u8", 1.0, 0, 1.0, 0), (worst[:0],))
        yield Sample(ByteMean("i8", 1.0, 5, 1.0, 0), (worst[:, :0],))


class ByteAveragePool(_Means, OverWindows, name="byte_average_pool"):
    """The mean of every window, as ``average_pool`` has it; pads stand for zero."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    count_include_pad: bool = False

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), BYTES)
        want_axis(self, IMAGE - 1, x.rank)
        shape = self.window.shape(self, x, x.shape[3])
        return self.made(x.with_shape(shape), (self.x_scale, self.x_zero))

    def reference(self, x: Array) -> Array:
        window: Window = self.window
        inside = np.ones((1, *x.shape[1:3], 1))
        border = float(self.count_include_pad)
        count = np.asarray(sum(window.taps(window.padded(inside, border))))
        moved = window.padded(x.astype(np.float64) - self.x_zero, 0.0)
        total = np.asarray(sum(window.taps(moved)))
        return self.mean(total, np.maximum(count, 1.0))

    @staticmethod
    def samples() -> Iterator[Sample]:
        for channels, (size, window) in zip(
            (3, 17, 1, 64, 150, 2), WINDOWS, strict=True
        ):
            for dtype, zero, count in (("uint8", 3, True), ("int8", -7, False)):
                x = some_bytes(*size, channels, dtype=dtype)
                for y_type, y_zero in (("u8", 100), ("i8", -20)):
                    pair = (y_type, 0.0413, y_zero, 0.05, zero)
                    op = ByteAveragePool(*pair, **window, count_include_pad=count)
                    yield Sample(op, (x,))
        # A window that lies in the border alone has the mean 0.
        alone = ByteAveragePool("u8", 0.1, 7, 0.1, 5, (1, 1), pads=(1, 1, 1, 1))
        yield Sample(alone, (some_bytes(1, 2, 3, 5, dtype="uint8"),))
