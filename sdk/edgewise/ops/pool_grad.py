"""What training needs of pools: gradients of their images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, integers, same_dtype, want, want_shape, wide
from edgewise.ops.pool import AveragePool, MaxPool
from edgewise.ops.windows import WINDOWS, Windowed
from edgewise.types import TensorType


class MaxPoolGrad(Windowed, name="max_pool_grad"):
    """Gradient of the image ``x[N, H, W, C]`` of a ``max_pool``, of ``dy``.

    Of equal elements the first of a window, row by row, has it all, as PyTorch has it.
    """

    def infer(self, x: TensorType, dy: TensorType) -> TensorType:
        same_dtype(self, x, dy)
        want(self, (x,), FLOATS)
        want_shape(self, "dy", dy, *self.window.shape(self, x, x.shape[3]))
        return x

    def reference(self, x: Array, dy: Array) -> Array:
        padded = self.window.padded(x, -np.inf)
        total, taps = np.zeros(padded.shape), list(self.window.taps(padded))
        # NaN is larger than all, as it wins in the pool.
        order = np.stack([np.where(np.isnan(tap), np.inf, tap) for tap in taps])
        places = self.window.places(padded.shape[1:-1])
        first = order.argmax(axis=0) if order.size else np.zeros(dy.shape, int)
        for number, place in enumerate(places):
            total[(slice(None), *place)] += np.where(first == number, wide(dy), 0.0)
        return _inside(self.pads, total, x.shape[1:3]).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for op, x, dy in _pools(MaxPool):
            yield Sample(MaxPoolGrad(**op), (x, dy))


class AveragePoolGrad(Windowed, name="average_pool_grad"):
    """Gradient ``[N, H, W, C]`` of the image of an ``average_pool``, of ``dy``."""

    count_include_pad: bool = False
    sizes: tuple[Dim, ...]  # H, W

    def infer(self, dy: TensorType) -> TensorType:
        want(self, (dy,), FLOATS)
        if len(self.sizes) != 2 or dy.rank != 4:
            raise self.refuse((dy,), "[N, h, w, C] and the sizes H, W")
        result = dy.with_shape((dy.shape[0], *self.sizes, dy.shape[3]))
        want_shape(self, "dy", dy, *self.window.shape(self, result, dy.shape[3]))
        return result

    def reference(self, dy: Array) -> Array:
        height, width = integers(self, self.sizes)
        border = float(self.count_include_pad)
        inside = self.window.padded(np.ones((1, height, width, 1)), border)
        count = np.asarray(sum(self.window.taps(inside)))
        total = np.zeros((len(dy), *inside.shape[1:3], dy.shape[3]))
        with np.errstate(all="ignore"):
            share = wide(dy) / np.maximum(count, 1.0)
            for place in self.window.places(inside.shape[1:3]):
                total[(slice(None), *place)] += share
        return _inside(self.pads, total, (height, width)).astype(dy.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for op, x, dy in _pools(AveragePool):
            yield Sample(AveragePoolGrad(**op, sizes=x.shape[1:3]), (dy,))


def _inside(pads: tuple[int, ...], padded: Array, sizes: tuple[int, ...]) -> Array:
    top, left = pads[:2]
    return padded[:, top : top + sizes[0], left : left + sizes[1]]


def _pools(op: type[Op]) -> Iterator[tuple[dict[str, Any], Array, Array]]:
    """Attributes, images and gradients of what comes out."""
    pairs = zip((3, 17, 1, 16, 5, 2), WINDOWS, strict=True)
    for channels, (size, window) in pairs:
        for more in ((False,), (True,)) if op is AveragePool else ((),):
            named = window | ({"count_include_pad": more[0]} if more else {})
            x = cases.floats(*size, channels)
            shape = np.shape(op(**named).reference(x))
            yield named, x, cases.floats(*shape, seed=1)
