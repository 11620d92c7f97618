"""Blocks of columns summed back into the image they were cut from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim, Expr, floordiv, product
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import NUMBERS, integers, may_equal, want, wide
from edgewise.ops.windows import Window
from edgewise.types import TensorType


class FoldColumns(Op, name="fold_columns"):
    """Blocks ``x[N, C * block, count]`` summed up in their places in ``[N, C, sizes]``.

    Block number l lies where window l of ``sizes`` does; pads are cut off.
    """

    sizes: tuple[Dim, ...]
    block: tuple[Dim, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def window(self) -> Window:
        """How the windows lie."""
        block = integers(self, self.block)
        return Window(block, self.strides, self.pads, self.dilations)

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), NUMBERS)
        axes, volume = len(self.sizes), product(self.block)
        if x.rank != 3 or not axes or volume == 0 or len(self.block) != axes:
            raise self.refuse((x,), "[N, C * block, count] and a block of 1 or more")
        channels = floordiv(x.shape[1], volume)
        y = x.with_shape((x.shape[0], channels, *self.sizes))
        if any(isinstance(size, Expr) for size in self.block):
            return y
        image = x.with_shape((x.shape[0], *self.sizes, channels))
        counts = self.window.shape(self, image, channels, axes)[1:-1]
        if not may_equal(channels * volume, x.shape[1]):
            raise self.refuse((x,), f"a multiple of {volume} rows")
        if not may_equal(product(counts), x.shape[2]):
            raise self.refuse((x,), f"{product(counts)} blocks")
        return y

    def reference(self, x: Array) -> Array:
        sizes, axes = integers(self, self.sizes), len(self.sizes)
        begins, ends = self.pads[:axes], self.pads[axes:]
        padded = [a + b + c for a, b, c in zip(sizes, begins, ends, strict=True)]
        counts = [
            (size - reach) // stride + 1
            for size, reach, stride in zip(
                padded, self.window.reach, self.strides, strict=True
            )
        ]
        volume, all_ = math.prod(self.window.kernel), slice(None)
        channels = x.shape[1] // volume
        blocks = wide(x).reshape(len(x), channels, volume, *counts)
        total = np.zeros((len(x), channels, *padded), blocks.dtype)
        with np.errstate(all="ignore"):
            for tap, place in enumerate(self.window.places(tuple(padded))):
                total[(all_, all_, *place)] += blocks[:, :, tap]
        inside = (slice(b, b + n) for b, n in zip(begins, sizes, strict=True))
        return np.ascontiguousarray(total[(all_, all_, *inside)]).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        forms = (
            ((5, 5), (1, 5), (1, 1), (0, 0, 0, 0), (1, 1), 5),
            ((5, 6), (2, 3), (2, 1), (1, 0, 0, 2), (1, 2), 12),
            ((7,), (3,), (2,), (0, 0), (1,), 3),
            ((3, 4, 5), (1, 2, 2), (1, 1, 1), (0,) * 6, (1, 1, 1), 36),
        )
        for *form, count in forms:
            op = FoldColumns(*form)
            rows = 2 * math.prod(op.window.kernel)
            yield Sample(op, (cases.floats(2, rows, count),))
            yield Sample(op, (cases.whole(0, rows, count, dtype="int32"),))
        for value, spot in itertools.product((np.nan, np.inf), (0, 2)):
            x = cases.floats(1, 3, 3)
            x[0, spot, 1] = value
            yield Sample(FoldColumns((7,), (3,), (2,), (0, 0), (1,)), (x,))
