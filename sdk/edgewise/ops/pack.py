"""Weights in the order kernels walk them: GEMM panels and depthwise taps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from edgewise.dims import Dim, ceildiv, floordiv, product
from edgewise.errors import ShapeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import want, want_axis
from edgewise.types import DType, TensorType

PANEL, QUAD = 16, 4
Size = TypeVar("Size", int, Dim)


def panels(columns: Dim) -> Dim:
    """How many panels hold ``columns`` columns."""
    return ceildiv(columns, PANEL)


def output_axis(packing: Op | None) -> int:
    """The logical axis of the output channels of a weight."""
    return packing.axes[-1] if isinstance(packing, PackPanels | PackQuads) else 0


def matrices(stored: Array, columns: int) -> Array:
    """``[B, K, columns]`` from the panels of B matrices, one after the other."""
    _, reduced, lanes = stored.shape
    each = max(-(-columns // PANEL), 1)
    tiles = stored.reshape(len(stored) // each, each, reduced, lanes)
    rows = tiles.transpose(0, 2, 1, 3).reshape(len(tiles), reduced, each * lanes)
    return rows[:, :, :columns]


class PackPanels(Op, name="pack_panels"):
    """GEMM panels ``[prod(batch) * groups * ceil(N / groups / 16), K, 16]``.

    ``axes`` permutes the logical axes: first ``batch`` ones that stay apart, last N,
    between them what K flattens.  Lanes beyond N are zero.
    """

    axes: tuple[int, ...]
    groups: int = 1
    batch: int = 0

    def infer(self, w: TensorType) -> TensorType:
        if self.groups < 1 or self.batch < 0:
            raise self.refuse((w,), f"groups >= 1 and batch >= 0: {self}")
        if sorted(self.axes) != list(range(w.rank)) or self.batch >= w.rank:
            raise self.refuse((w,), f"{len(self.axes)} axes, the last not a batch")
        batch, reduced, columns = self._split(w.shape)
        if isinstance(columns, int) and columns % self.groups:
            raise self.refuse((w,), f"columns in {self.groups} equal groups")
        each = panels(floordiv(columns, self.groups))
        return w.with_shape((product(batch) * self.groups * each, reduced, PANEL))

    def reference(self, w: Array) -> Array:
        batch, reduced, columns = self._split(w.shape)
        outer, each = math.prod(batch) * self.groups, columns // self.groups
        rows = w.transpose(self.axes).reshape(*batch, reduced, self.groups, each)
        rows = np.moveaxis(rows, -2, len(batch)).reshape(outer, reduced, each)
        count = -(-each // PANEL)
        wide = np.zeros((outer, reduced, count * PANEL), w.dtype)
        wide[:, :, :each] = rows
        tiles = wide.reshape(outer, reduced, count, PANEL).transpose(0, 2, 1, 3)
        return np.ascontiguousarray(tiles).reshape(outer * count, reduced, PANEL)

    def unpack(self, stored: Array, logical: TensorType) -> Array:
        """The logical array whose packed form is ``stored``."""
        packed = self.infer(logical).dims
        if stored.shape != packed:
            raise ShapeError(
                f"pack_panels: got stored {list(stored.shape)}; want {list(packed)}"
            )
        batch, reduced, columns = self._split(logical.dims)
        if not math.prod(logical.dims):
            return np.zeros(logical.dims, stored.dtype)
        each = columns // self.groups
        rows = matrices(stored, each).reshape(*batch, self.groups, reduced, each)
        rows = np.moveaxis(rows, len(batch), -2)
        permuted = rows.reshape([logical.dims[axis] for axis in self.axes])
        return np.ascontiguousarray(permuted.transpose(np.argsort(self.axes)))

    def _split(self, shape: tuple[Size, ...]) -> tuple[tuple[Size, ...], Size, Size]:
        """The batch axes, K and N."""
        ordered = tuple(shape[axis] for axis in self.axes)
        reduced: Size = math.prod(ordered[self.batch : -1])
        return ordered[: self.batch], reduced, ordered[-1]

    @staticmethod
    def samples() -> Iterator[Sample]:
        for k, n in ((3, 5), (1, 16), (7, 17), (4, 33), (0, 3), (2, 0)):
            yield Sample(PackPanels((0, 1)), (cases.floats(k, n),))
            yield Sample(PackPanels((1, 0)), (cases.floats(n, k),))
        conv = (2, 3, 1, 0)
        yield Sample(PackPanels(conv), (cases.floats(18, 3, 3, 2),))
        yield Sample(PackPanels(conv, groups=2), (cases.floats(34, 3, 1, 2),))
        yield Sample(PackPanels(conv, groups=5), (cases.floats(5, 1, 3, 3),))
        yield Sample(PackPanels((0, 2, 1), batch=1), (cases.floats(2, 21, 4),))
        yield Sample(
            PackPanels((0, 1, 3, 2), batch=2, groups=3), (cases.floats(2, 2, 6, 3),)
        )
        yield Sample(PackPanels((0, 1)), (cases.whole(3, 18, dtype="int8"),))
        yield Sample(PackPanels((0, 1)), (cases.floats(3, 18, dtype="float64"),))


def quad_matrices(stored: Array, columns: int, groups: int) -> Array:
    """``[groups, K, columns]`` from quads."""
    count, quads, lanes, _ = stored.shape
    each = max(count // groups, 1)
    tiles = stored.reshape(groups, each, quads, lanes, QUAD).transpose(0, 2, 4, 1, 3)
    return tiles.reshape(groups, quads * QUAD, each * lanes)[:, :, :columns]


class PackQuads(Op, name="pack_quads"):
    """Panels for products of bytes: ``[groups * ceil(N / groups / 16), K / 4, 16, 4]``.

    ``axes`` permutes the logical axes: last N, before it what K flattens, of which the
    innermost is filled up with zeros to whole fours.  Four of K lie together, as
    instructions want them.  Lanes beyond N are zero.
    """

    axes: tuple[int, ...]
    groups: int = 1

    def infer(self, w: TensorType) -> TensorType:
        want(self, (w,), frozenset({DType.I8}))
        count = PackPanels(self.axes, self.groups).infer(w).shape[0]
        if w.rank < 2:
            raise self.refuse((w,), "two axes or more")
        inner = w.shape[self.axes[-2]]
        outer = product(w.shape[axis] for axis in self.axes[:-2])
        return w.with_shape((count, outer * ceildiv(inner, QUAD), PANEL, QUAD))

    def reference(self, w: Array) -> Array:
        short = -w.shape[self.axes[-2]] % QUAD
        width = [(0, short if axis == self.axes[-2] else 0) for axis in range(w.ndim)]
        tiles = PackPanels(self.axes, self.groups).reference(np.pad(w, width))
        count, reduced, lanes = tiles.shape
        quads = tiles.reshape(count, reduced // QUAD, QUAD, lanes)
        return np.ascontiguousarray(quads.transpose(0, 1, 3, 2))

    def unpack(self, stored: Array, logical: TensorType) -> Array:
        """The logical array whose packed form is ``stored``."""
        packed = self.infer(logical).dims
        if stored.shape != packed:
            raise ShapeError(
                f"pack_quads: got stored {list(stored.shape)}; want {list(packed)}"
            )
        count, quads, lanes, _ = packed
        tiles = stored.transpose(0, 1, 3, 2).reshape(count, quads * QUAD, lanes)
        dims, inner = list(logical.dims), self.axes[-2]
        dims[inner] += -dims[inner] % QUAD
        wide = logical.with_shape(tuple(dims))
        whole = PackPanels(self.axes, self.groups).unpack(tiles, wide)
        kept = [slice(0, size) for size in logical.dims]
        return np.ascontiguousarray(whole[tuple(kept)])

    @staticmethod
    def samples() -> Iterator[Sample]:
        for k, n in ((4, 5), (8, 16), (13, 33), (0, 3), (4, 0)):
            yield Sample(PackQuads((0, 1)), (cases.whole(k, n, dtype="int8"),))
        conv = cases.whole(34, 4, 3, 2, dtype="int8")
        yield Sample(PackQuads((2, 3, 1, 0)), (conv,))
        yield Sample(PackQuads((2, 3, 1, 0), groups=2), (conv[:, :3],))


class PackTaps(Op, name="pack_taps"):
    """A depthwise weight ``[C, 1, kh, kw]`` as ``[kh * kw, C]``."""

    def infer(self, w: TensorType) -> TensorType:
        want_axis(self, 3, w.rank)
        if w.rank != 4 or w.shape[1] != 1:
            raise self.refuse((w,), "a weight [C, 1, kh, kw]")
        channels, _, height, width = w.shape
        return w.with_shape((height * width, channels))

    def reference(self, w: Array) -> Array:
        channels, _, height, width = w.shape
        taps = w.reshape(channels, height * width)
        return np.ascontiguousarray(taps.T)

    def unpack(self, stored: Array, logical: TensorType) -> Array:
        """The logical array whose packed form is ``stored``."""
        packed = self.infer(logical).dims
        if stored.shape != packed:
            raise ShapeError(
                f"pack_taps: got stored {list(stored.shape)}; want {list(packed)}"
            )
        return np.ascontiguousarray(stored.T).reshape(logical.dims)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((1, 1, 3, 3), (17, 1, 3, 3), (33, 1, 1, 5), (0, 1, 3, 3)):
            yield Sample(PackTaps(), (cases.floats(*shape),))
        yield Sample(PackTaps(), (cases.whole(5, 1, 3, 3, dtype="int8"),))
        yield Sample(PackTaps(), (cases.floats(4, 1, 2, 3, dtype="float64"),))
