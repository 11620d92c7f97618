"""What training needs of resizing: the share of each new element to the old ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, integers, want, want_shape
from edgewise.ops.resampling import Axis, Taps, taps
from edgewise.ops.resize import Resize
from edgewise.types import TensorType


class ResizeGrad(Op, name="resize_grad"):
    """Gradient of what was resized from ``sizes``, of ``dy``; the rest as for a resize.

    Resizing is linear: this is the transposed map, axis by axis from the last.
    """

    sizes: tuple[Dim, ...]
    mode: str = "nearest"
    positions: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    coefficient: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False

    def infer(
        self,
        dy: TensorType,
        scales: TensorType | None = None,
        roi: TensorType | None = None,
    ) -> TensorType:
        want(self, (dy, scales, roi), FLOATS)
        if len(self.sizes) != dy.rank:
            raise self.refuse((dy,), f"{dy.rank} sizes")
        want_shape(self, "scales", scales, dy.rank)
        want_shape(self, "roi", roi, 2 * dy.rank)
        self._forward(dy.shape).infer(dy.with_shape(self.sizes), scales, roi)
        return dy.with_shape(self.sizes)

    def _forward(self, sizes: tuple[Dim, ...]) -> Resize:
        return Resize(sizes, *self.values[1:])

    def reference(
        self, dy: Array, scales: Array | None = None, roi: Array | None = None
    ) -> Array:
        forward = self._forward(dy.shape)
        shape = integers(self, self.sizes)
        axes = list(enumerate(forward.axes(shape, scales, roi)))
        if 0 in dy.shape:
            return np.zeros(shape, dy.dtype)
        grad = dy.astype(np.float64)
        for axis, form in reversed(axes):
            if form != Axis(form.size, form.size, 1.0):
                grad = _spread(grad, axis, form, taps(forward.form, form))
        return grad.astype(dy.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in Resize.samples():
            x, *rest = sample.inputs
            if x is None or x.dtype.kind != "f":
                continue
            op = ResizeGrad(x.shape, *sample.op.values[1:-1])
            dy = cases.floats(*sample.op.values[0], dtype=str(x.dtype))  # type: ignore[misc]  # those of samples are numbers
            yield Sample(op, (dy, *rest))


def _spread(grad: Array, axis: int, form: Axis, read: Taps) -> Array:
    """The gradient along an axis before it was resized."""
    weights = np.zeros((form.size, form.target))
    for places, factors in zip(read.places, read.weights, strict=True):
        inside = factors if read.outside is None else np.where(read.outside, 0, factors)
        np.add.at(weights, (places, np.arange(form.target)), inside)
    with np.errstate(all="ignore"):
        moved = np.moveaxis(grad, axis, -1) @ weights.T
    return np.ascontiguousarray(np.moveaxis(moved, -1, axis))
