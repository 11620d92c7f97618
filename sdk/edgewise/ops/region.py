"""Pooling of regions whose corners tensors give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce

import numpy as np

from edgewise.errors import INDEX_OUT_OF_RANGE
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, INDICES, stopped, want, want_shape
from edgewise.types import TensorType

MODES = ("avg", "max")
# Samples along one axis of a bin; a region that wants more is no region of the image.
MOST_SAMPLES = 1 << 9


class _Region(Op):
    """One output image of a fixed size for every region of ``x[N, C, H, W]``."""

    height: int
    width: int
    scale: float = 1.0

    def want_regions(self, x: TensorType, rois: TensorType, columns: int) -> TensorType:
        """The type of the output, once the inputs fit."""
        want(self, (x, rois), FLOATS)
        if x.rank != 4 or rois.rank != 2 or min(self.height, self.width) < 1:
            raise self.refuse((x, rois), f"[N, C, H, W], rois[R, {columns}], a size")
        want_shape(self, "rois", rois, rois.shape[0], columns)
        return x.with_shape((rois.shape[0], x.shape[1], self.height, self.width))

    def checked(self, x: Array, rois: Array, images: Array) -> Array:
        """Corners in elements; a region of no image, or endless, stops the run."""
        # In single precision, so that as many samples fit a bin as elsewhere.
        kind = "f8" if rois.dtype == np.float64 else "f4"
        corners = np.asarray(rois.astype(kind) * np.asarray(self.scale, kind))
        if np.any((images < 0) | (images >= len(x))) or not np.isfinite(corners).all():
            raise stopped(self, INDEX_OUT_OF_RANGE)
        return corners


class RoiAlign(_Region, name="roi_align"):
    """The mean (or the maximum) of samples between elements, for each bin of a region.

    ``rois[R, 4]`` are x1, y1, x2, y2, in the image that ``images[R]`` numbers.
    ``samples_per_bin`` is 0 for as many as the region has elements.
    """

    mode: str = "avg"
    samples_per_bin: int = 0
    half_pixel: bool = True

    def infer(self, x: TensorType, rois: TensorType, images: TensorType) -> TensorType:
        want(self, (images,), INDICES)
        if self.mode not in MODES or not 0 <= self.samples_per_bin <= MOST_SAMPLES:
            raise self.refuse((x,), f"one of {MODES}, 0 to {MOST_SAMPLES} samples")
        y = self.want_regions(x, rois, 4)
        want_shape(self, "images", images, rois.shape[0])
        return y

    def reference(self, x: Array, rois: Array, images: Array) -> Array:
        corners = self.checked(x, rois, images)
        corners = corners - corners.dtype.type(0.5 * self.half_pixel)
        y = np.zeros((len(rois), x.shape[1], self.height, self.width), x.dtype)
        with np.errstate(all="ignore"):
            for n, (x1, y1, x2, y2) in enumerate(corners):
                image = x[int(images[n])].astype(np.float64)
                rows = self._taps(y1, y2, self.height, image.shape[1])
                columns = self._taps(x1, x2, self.width, image.shape[2])
                y[n] = self._pooled(image, rows, columns)
        return y

    def _taps(
        self, start: float, end: float, bins: int, size: int
    ) -> tuple[Array, Array]:
        """Elements and weights ``[2 * samples, bins]`` along one axis."""
        each = (end - start if self.half_pixel else max(end - start, 1.0)) / bins
        count = self.samples_per_bin or max(math.ceil(each), 0)
        if count > MOST_SAMPLES:
            raise stopped(self, INDEX_OUT_OF_RANGE)
        inside = (np.arange(count)[:, None] + 0.5) / max(count, 1)
        place = start + (np.arange(bins) + inside) * each
        valid = (place >= -1) & (place <= size) & (size > 0)
        place = np.clip(place, 0, max(size - 1, 0))
        low = place.astype(np.int64)
        share = place - low
        index = np.concatenate([low, np.minimum(low + 1, max(size - 1, 0))])
        weight = np.concatenate([1 - share, share]) * np.tile(valid, (2, 1))
        return index, weight

    def _pooled(
        self, image: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]
    ) -> Array:
        total = np.zeros((len(image), self.height, self.width))
        if not len(rows[0]) * len(columns[0]) * image.size:
            return total
        lines = (image[:, index] * w[:, None] for index, w in zip(*rows, strict=True))
        if self.mode == "max":
            parts = (
                line[:, :, index] * weight
                for line in lines
                for index, weight in zip(*columns, strict=True)
            )
            return np.asarray(reduce(np.maximum, parts))
        line = np.asarray(sum(lines))
        for index, weight in zip(*columns, strict=True):
            total += line[:, :, index] * weight
        return total / (len(rows[0]) * len(columns[0]) / 4)

    @staticmethod
    def samples() -> Iterator[Sample]:
        x, images = cases.floats(2, 3, 6, 7), np.asarray([1, 0, 0])
        rois = np.asarray([[0, 1, 5, 4], [-3, 2, 9, 2.5], [4, 4, 3, 3]], "f4")
        for mode in MODES:
            for count, half in ((0, True), (2, False), (3, True)):
                op = RoiAlign(2, 3, 0.75, mode, count, half)
                yield Sample(op, (x, rois, images))
            yield Sample(RoiAlign(1, 1, mode=mode), (x, rois[:0], images[:0]))
        bad = x.copy()
        bad[1, 1, 5, 6] = np.nan
        yield Sample(RoiAlign(2, 2), (bad, rois, images))


class MaxRoiPool(_Region, name="max_roi_pool"):
    """The largest element of each bin of a region whose corners are rounded.

    ``rois[R, 5]`` are the number of the image, x1, y1, x2, y2.  An empty bin is zero.
    """

    def infer(self, x: TensorType, rois: TensorType) -> TensorType:
        return self.want_regions(x, rois, 5)

    def reference(self, x: Array, rois: Array) -> Array:
        corners = self.checked(x, rois[:, 1:], rois[:, 0])
        # Halves go away from zero, as in the C function of that name.
        corners = np.trunc(corners + np.copysign(0.5, corners))
        y = np.zeros((len(rois), x.shape[1], self.height, self.width), x.dtype)
        for n, (x1, y1, x2, y2) in enumerate(corners.tolist()):
            image = x[int(rois[n, 0])]
            rows = _bins(y1, y2, self.height, x.shape[2])
            columns = _bins(x1, x2, self.width, x.shape[3])
            for i, row in enumerate(rows):
                for j, column in enumerate(columns):
                    seen = image[:, row, column].reshape(len(image), -1)
                    if seen.shape[1]:
                        y[n, :, i, j] = seen.max(1)
        return y

    @staticmethod
    def samples() -> Iterator[Sample]:
        x = cases.floats(2, 3, 6, 7)
        rois = [[1, 0, 1, 5, 4], [0, -3, 2, 9, 2.5], [0, 4, 4, 3, 3]]
        yield Sample(MaxRoiPool(2, 3, 0.75), (x, np.asarray(rois, "f4")))
        yield Sample(MaxRoiPool(9, 1), (x, np.asarray(rois, "f4")))
        yield Sample(MaxRoiPool(1, 1), (x, np.zeros((0, 5), "f4")))


def _bins(start: float, end: float, bins: int, size: int) -> list[slice]:
    extent = max(end - start + 1, 1.0)
    edges = np.arange(bins + 1) * (extent / bins)
    first = np.clip(np.floor(edges[:-1]) + start, 0, size).astype(int)
    last = np.clip(np.ceil(edges[1:]) + start, 0, size).astype(int)
    return [slice(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
