"""Convolution whose taps are moved by a tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, may_equal, same_dtype, want, want_shape
from edgewise.ops.interpolate import linear, sampled, zeros
from edgewise.ops.windows import Window
from edgewise.types import TensorType


class DeformConv(Op, name="deform_conv"):
    """``x[N, C, ...]`` by ``w[O, C / groups, ...]``, each tap moved by ``offset``.

    ``offset[N, offset_groups * taps * axes, ...]`` is in elements, ``mask`` (one factor
    a tap) has no axes; both have the sizes of the output.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    offset_groups: int = 1

    @property
    def window(self) -> Window:
        """How the windows lie before their taps are moved."""
        return Window(self.kernel, self.strides, self.pads, self.dilations)

    def infer(
        self,
        x: TensorType,
        w: TensorType,
        offset: TensorType,
        bias: TensorType | None = None,
        mask: TensorType | None = None,
    ) -> TensorType:
        want(self, (x,), FLOATS)
        same_dtype(self, x, w, offset, bias, mask)
        axes = len(self.kernel)
        if not axes or x.rank != axes + 2 or w.rank != axes + 2:
            raise self.refuse((x, w), "x[N, C, ...] and w[O, C / groups, ...]")
        want_shape(self, "weight", w, *w.shape[:2], *self.kernel)
        last = x.with_shape((x.shape[0], *x.shape[2:], x.shape[1]))
        sizes = self.window.shape(self, last, 1, axes)[1:-1]
        for parts, whole in (
            (self.groups, w.shape[0]),
            (self.groups, x.shape[1]),
            (self.offset_groups, x.shape[1]),
        ):
            if parts < 1 or not may_equal(whole % parts, 0):
                raise self.refuse((x, w), f"{parts} equal groups")
        want_shape(self, "x", x, x.shape[0], w.shape[1] * self.groups, *x.shape[2:])
        taps = self.offset_groups * math.prod(self.kernel)
        want_shape(self, "offset", offset, x.shape[0], taps * axes, *sizes)
        want_shape(self, "mask", mask, x.shape[0], taps, *sizes)
        want_shape(self, "bias", bias, w.shape[0])
        return x.with_shape((x.shape[0], w.shape[0], *sizes))

    def reference(
        self,
        x: Array,
        w: Array,
        offset: Array,
        bias: Array | None = None,
        mask: Array | None = None,
    ) -> Array:
        sizes, outputs = offset.shape[2:], len(w)
        taps, axes = math.prod(self.kernel), len(self.kernel)
        moves = offset.astype(np.float64)
        moves = moves.reshape(len(x), self.offset_groups, taps, axes, *sizes)
        weight = w.astype(np.float64).reshape(self.groups, outputs // self.groups, -1)
        y = np.zeros((len(x), outputs, *sizes))
        with np.errstate(all="ignore"):
            for n, image in enumerate(x.astype(np.float64)):
                columns = self._columns(image, moves[n])
                if mask is not None:
                    factors = mask[n].astype(np.float64)
                    columns *= factors.reshape(self.offset_groups, 1, taps, *sizes)
                columns = columns.reshape(self.groups, -1, math.prod(sizes))
                y[n] = (weight @ columns).reshape(outputs, *sizes)
            if bias is not None:
                y += bias.astype(np.float64).reshape(-1, *(1,) * axes)
            return y.astype(x.dtype)

    def _columns(self, image: Array, moves: Array) -> Array:
        """What every tap sees: ``[offset groups, channels each, taps, sizes...]``."""
        sizes = moves.shape[3:]
        starts = [
            stride * np.arange(count) - pad
            for stride, count, pad in zip(self.strides, sizes, self.pads, strict=False)
        ]
        base = np.stack(np.meshgrid(*starts, indexing="ij")).astype(np.float64)
        images = image.reshape(self.offset_groups, -1, *image.shape[1:])
        columns = np.zeros((*images.shape[:2], moves.shape[1], *sizes))
        for tap, at in enumerate(itertools.product(*map(range, self.kernel))):
            step = np.multiply(at, self.dilations).reshape(-1, *(1,) * len(sizes))
            for group, part in enumerate(images):
                places = base + step + moves[group, tap]
                columns[group, :, tap] = sampled(part, places, linear, zeros)
        return columns

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        reduced = math.prod(inputs[1].dims[1:]) if inputs[1] else 0
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * reduced, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        op = DeformConv((3, 2), (1, 2), (1, 0, 1, 1), (1, 1), 2, 2)
        x, w = cases.floats(2, 4, 5, 6), cases.floats(6, 2, 3, 2, seed=1)
        offset, mask = cases.floats(2, 24, 5, 3), cases.positive(2, 12, 5, 3)
        yield Sample(op, (x, w, offset))
        yield Sample(op, (x, w, offset, cases.floats(6), mask))
        yield Sample(op, (x[:0], w, offset[:0], None, mask[:0]))
        far = offset.copy()
        far[0, 0], far[1, 3, 2] = 1e30, np.nan
        yield Sample(op, (x, w, far))
        line = DeformConv((2,), (1,), (0, 0), (2,))
        row, weight = cases.floats(1, 2, 6), cases.floats(3, 2, 2)
        yield Sample(line, (row, weight, cases.floats(1, 2, 4)))
