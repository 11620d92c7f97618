"""Resizing along any axes, by any of ONNX's rules."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.errors import INDEX_OUT_OF_RANGE, SHAPE_MISMATCH
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    FLOATS,
    NUMBERS,
    integers,
    stopped,
    want,
    want_shape,
)
from edgewise.ops.resampling import MODES, POSITIONS, ROUNDINGS, Axis, Form, taps
from edgewise.types import DType, TensorType

BOOLS = frozenset({DType.BOOL})


class Resize(Op, name="resize"):
    """``x`` with ``sizes``, axis after axis.

    ``scales`` holds new elements for each old one, an entry an axis; absent, it is the
    quotient of the sizes.  ``roi`` holds where the region of interest begins on every
    axis, then where it ends.
    """

    sizes: tuple[Dim, ...]
    mode: str = "nearest"
    positions: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    coefficient: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0

    @property
    def form(self) -> Form:
        """How elements are interpolated."""
        return Form(
            self.mode,
            self.positions,
            self.rounding,
            self.coefficient,
            self.exclude_outside,
            self.antialias,
        )

    def infer(
        self,
        x: TensorType,
        scales: TensorType | None = None,
        roi: TensorType | None = None,
    ) -> TensorType:
        want(self, (x,), NUMBERS | BOOLS)
        want(self, (scales, roi), FLOATS)
        known = self.positions in POSITIONS and self.rounding in ROUNDINGS
        if self.mode not in MODES or not known:
            raise self.refuse((x,), f"modes that ONNX has, not {self!r}")
        if len(self.sizes) != x.rank:
            raise self.refuse((x,), f"{x.rank} sizes")
        for size, count in zip(x.shape, self.sizes, strict=True):
            if size == 0 and isinstance(count, int) and count:
                raise self.refuse((x,), f"something to make {count} elements of")
        want_shape(self, "scales", scales, x.rank)
        want_shape(self, "roi", roi, 2 * x.rank)
        return x.with_shape(self.sizes)

    def reference(
        self, x: Array, scales: Array | None = None, roi: Array | None = None
    ) -> Array:
        forms = tuple(self.axes(x.shape, scales, roi))
        if 0 in self.sizes:
            return np.empty(integers(self, self.sizes), x.dtype)
        y = x
        for axis, form in enumerate(forms):
            if form != Axis(form.size, form.size, 1.0):
                y = self._resized(y, axis, form)
        if x.dtype.kind in "iu" and y.dtype != x.dtype:
            info = np.iinfo(x.dtype)
            y = np.clip(np.rint(y), info.min, info.max)
        return y.astype(x.dtype)

    def axes(
        self, shape: tuple[int, ...], scales: Array | None, roi: Array | None
    ) -> Iterator[Axis]:
        """How each axis is resized, once what only a run knows makes sense."""
        rank, counts = len(shape), integers(self, self.sizes)
        region = np.repeat((0.0, 1.0), rank)
        if roi is not None and self.positions == "tf_crop_and_resize":
            region = roi.astype(np.float64)
        if not np.isfinite(region).all():
            raise stopped(self, INDEX_OUT_OF_RANGE)
        for axis, (size, count) in enumerate(zip(shape, counts, strict=True)):
            scale = count / size if size else 1.0
            scale = scale if scales is None else float(scales[axis])
            # The number of taps follows from the scale, so it must be what it says.
            near = abs(scale * size - count) <= 1
            if not near or (count and not (size and scale > 0)):
                raise stopped(self, SHAPE_MISMATCH)
            start, end = float(region[axis]), float(region[axis + rank])
            yield Axis(size, count, scale, start, end)

    def _resized(self, x: Array, axis: int, form: Axis) -> Array:
        index, weight, outside = taps(self.form, form)
        column = (-1, *(1,) * (x.ndim - axis - 1))
        if self.mode == "nearest":
            y: Array = x.take(index[0], axis)
        else:
            with np.errstate(all="ignore"):
                parts = zip(index, weight, strict=True)
                doubles = x.astype(np.float64)
                y = np.asarray(
                    sum(doubles.take(i, axis) * w.reshape(column) for i, w in parts)
                )
        if outside is None:
            return y
        return np.asarray(np.where(outside.reshape(column), self.extrapolation, y))

    @staticmethod
    def samples() -> Iterator[Sample]:
        x = cases.floats(1, 4, 5, 2)
        for mode in MODES:
            for positions in POSITIONS:
                op = Resize((1, 7, 3, 2), mode, positions)
                yield Sample(op, (x,))
            yield Sample(Resize((1, 2, 9, 2), mode, exclude_outside=True), (x,))
            yield Sample(Resize((1, 4, 5, 2), mode), (x,))
        for mode in ("linear", "cubic"):
            op = Resize((1, 2, 3, 2), mode, coefficient=-0.5, antialias=True)
            yield Sample(op, (x,))
        for rounding in ROUNDINGS:
            yield Sample(Resize((1, 8, 2, 2), rounding=rounding), (x,))
        scales = np.asarray((1, 0.6, 1.5, 1), "f4")
        yield Sample(Resize((1, 2, 7, 2), "linear", "align_corners"), (x, scales))
        roi = np.asarray((0, 0.4, -0.2, 0, 1, 0.6, 0.8, 1), "f4")
        op = Resize((1, 3, 3, 2), "linear", "tf_crop_and_resize", extrapolation=9.0)
        yield Sample(op, (x, None, roi))
        op = Resize((1, 7, 4, 2), "cubic")
        for dtype in ("int8", "uint8", "float16", "float64"):
            yield Sample(op, (cases.whole(1, 4, 3, 2, dtype=dtype, low=-99, high=99),))
        for mode in MODES:
            yield Sample(Resize((0, 6), mode), (cases.floats(0, 3),))
            yield Sample(Resize((4, 0), mode), (cases.floats(2, 3),))
            scales = np.asarray((2, 2), "f4")
            yield Sample(Resize((4, 0), mode), (cases.floats(2, 0), scales))
        bad = x.copy()
        bad[0, 1, 1, 0], bad[0, 2, 3, 1] = np.nan, np.inf
        yield Sample(Resize((1, 8, 10, 2), "linear"), (bad,))
