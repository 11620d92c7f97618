"""Sampling at the places of a grid, and grids that are affine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, integers, want, want_shape
from edgewise.ops.interpolate import NEIGHBOURS, clamped, reflected, sampled, zeros
from edgewise.types import TensorType

PADDINGS = ("zeros", "border", "reflection")


class GridSample(Op, name="grid_sample"):
    """``x[N, C, sizes...]`` at the places ``grid[N, out..., axes]``.

    -1 and 1 are the ends of an axis: the middles of its outer elements where
    ``align_corners``, else their outer edges.  The last axis of x comes first in grid.
    """

    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False

    def infer(self, x: TensorType, grid: TensorType) -> TensorType:
        want(self, (x, grid), FLOATS)
        axes = x.rank - 2
        if self.mode not in NEIGHBOURS or self.padding not in PADDINGS:
            raise self.refuse((x,), f"{list(NEIGHBOURS)} and one of {PADDINGS}")
        if axes < 1 or grid.rank != x.rank or 0 in x.shape[2:]:
            raise self.refuse((x, grid), "x[N, C, sizes...] and grid[N, out..., axes]")
        want_shape(self, "grid", grid, x.shape[0], *grid.shape[1:-1], axes)
        return x.with_shape((*x.shape[:2], *grid.shape[1:-1]))

    def reference(self, x: Array, grid: Array) -> Array:
        images = x.astype(np.float64)
        places = np.moveaxis(grid.astype(np.float64)[..., ::-1], -1, 1)
        y = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
        with np.errstate(all="ignore"):
            for n, image in enumerate(images):
                y[n] = self._sampled(image, places[n])
        return y

    def _sampled(self, image: Array, grid: Array) -> Array:
        sizes = image.shape[1:]
        places = np.stack(
            [self._place(*pair) for pair in zip(grid, sizes, strict=True)]
        )
        return sampled(image, places, NEIGHBOURS[self.mode], self._pick)

    def _place(self, grid: Array, size: int) -> Array:
        """The position in elements, drawn into the image as the padding says."""
        if self.align_corners:
            place = (grid + 1) / 2 * (size - 1)
        else:
            place = ((grid + 1) * size - 1) / 2
        if self.mode == "nearest":
            place = np.rint(place)
        # Between four elements the padding is that of each of them.
        if self.padding == "border" and self.mode != "cubic":
            return np.asarray(np.clip(place, 0, size - 1))
        return self._reflected(place, size) if self.padding == "reflection" else place

    def _reflected(self, place: Array, size: int) -> Array:
        edge = 0.0 if self.align_corners else 0.5
        return reflected(place, -edge, size - 1 + edge)

    def _pick(self, index: Array, axis: int, size: int) -> tuple[Array, Array]:
        if self.padding == "zeros":
            return zeros(index, axis, size)
        if self.padding == "reflection":
            index = self._reflected(index, size)
        return clamped(index, size), np.ones(index.shape, bool)

    @staticmethod
    def samples() -> Iterator[Sample]:
        x, grid = cases.floats(2, 3, 4, 5), cases.floats(2, 3, 2, 2)
        for mode, padding in itertools.product(NEIGHBOURS, PADDINGS):
            for corners in (False, True):
                yield Sample(GridSample(mode, padding, corners), (x, grid))
            cube, places = cases.floats(1, 2, 2, 3, 4), cases.floats(1, 2, 1, 2, 3)
            yield Sample(GridSample(mode, padding), (cube, places))
            line = cases.floats(1, 2, 1), cases.floats(1, 4, 1)
            yield Sample(GridSample(mode, padding, align_corners=True), line)
        far = grid.copy()
        far[0, 0, 0] = np.nan, 1e30
        far[1, 2, 1] = np.inf, -np.inf
        yield Sample(GridSample(), (x, far))
        yield Sample(GridSample("nearest", "border"), (x, np.nan_to_num(far)))
        bad = x.copy()
        bad[0, 0, 0, 0] = np.nan
        yield Sample(GridSample("cubic"), (bad, grid))
        yield Sample(GridSample(), (x[:0], grid[:0]))


class AffineGrid(Op, name="affine_grid"):
    """The grid ``[N, sizes..., axes]`` of places ``theta[N, axes, axes + 1]`` maps."""

    sizes: tuple[Dim, ...]
    align_corners: bool = False

    def infer(self, theta: TensorType) -> TensorType:
        want(self, (theta,), FLOATS)
        axes = len(self.sizes)
        if theta.rank != 3 or not axes:
            raise self.refuse((theta,), "theta[N, axes, axes + 1] and a size per axis")
        want_shape(self, "theta", theta, theta.shape[0], axes, axes + 1)
        return theta.with_shape((theta.shape[0], *self.sizes, axes))

    def reference(self, theta: Array) -> Array:
        sizes = integers(self, self.sizes)
        axes = np.meshgrid(*map(self._line, sizes), indexing="ij")
        base = np.stack([*axes[::-1], np.ones(sizes)], axis=-1)
        with np.errstate(all="ignore"):
            turned = theta.astype(np.float64).transpose(0, 2, 1)
            grid = base.reshape(-1, len(sizes) + 1) @ turned
        return grid.reshape(len(theta), *sizes, len(sizes)).astype(theta.dtype)

    def _line(self, size: int) -> Array:
        if self.align_corners:
            return np.linspace(-1.0, 1.0, size) if size > 1 else np.zeros(size)
        return np.asarray((2 * np.arange(size) + 1) / max(size, 1) - 1)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for corners in (False, True):
            yield Sample(AffineGrid((3, 4), corners), (cases.floats(2, 2, 3),))
            yield Sample(AffineGrid((2, 1, 3), corners), (cases.floats(1, 3, 4),))
            yield Sample(AffineGrid((0, 4), corners), (cases.floats(2, 2, 3),))
