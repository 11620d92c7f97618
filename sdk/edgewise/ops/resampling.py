"""How resizing one axis reads it: for each new element, which old ones, how much.

The rules are those of ONNX's Resize.  Positions are in double precision; where the
scale is the quotient of two sizes they take one division, so that ties are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edgewise.ir.op import Array

ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
MODES = ("nearest", "linear", "cubic")


class Axis(NamedTuple):
    """One axis while it is resized.

    Attributes:
        size: Elements it has.
        target: Elements it will have.
        scale: New elements for each old one; ``target / size`` or near it.
        start: Where the region of interest begins, as a share of the axis.
        end: Where it ends.
    """

    size: int
    target: int
    scale: float
    start: float = 0.0
    end: float = 1.0


class Form(NamedTuple):
    """How elements are interpolated; the fields are ONNX's attributes."""

    mode: str = "nearest"
    positions: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    coefficient: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


class Taps(NamedTuple):
    """What the new elements read; the first axis of each array counts taps.

    Attributes:
        places: Which old element.
        weights: With which factor.
        outside: New elements that lie outside the old axis, where that matters.
    """

    places: Array
    weights: Array
    outside: Array | None


def _is_quotient(axis: Axis) -> bool:
    return axis.scale == axis.target / axis.size


def _half_pixel(i: Array, axis: Axis) -> Array:
    if _is_quotient(axis):
        return np.asarray(((2 * i + 1) * axis.size - axis.target) / (2 * axis.target))
    return np.asarray((i + 0.5) / axis.scale - 0.5)


def _asymmetric(i: Array, axis: Axis) -> Array:
    return np.asarray(
        i * axis.size / axis.target if _is_quotient(axis) else i / axis.scale
    )


def _tf_half_pixel(i: Array, axis: Axis) -> Array:
    return np.asarray((i + 0.5) / axis.scale)


def _pytorch_half_pixel(i: Array, axis: Axis) -> Array:
    return _half_pixel(i, axis) if axis.target > 1 else np.zeros_like(i)


def _half_pixel_symmetric(i: Array, axis: Axis) -> Array:
    missing = 1 - axis.target / (axis.scale * axis.size)
    return np.asarray(axis.size / 2 * missing + _half_pixel(i, axis))


def _align_corners(i: Array, axis: Axis) -> Array:
    """The last element may lie off the corner: the new length is taken unrounded."""
    length = axis.scale * axis.size
    if length == 1:
        return np.zeros_like(i)
    return np.asarray(i * (axis.size - 1) / (length - 1))


def _crop(i: Array, axis: Axis) -> Array:
    last, extent = axis.size - 1, axis.end - axis.start
    length = axis.scale * axis.size
    if length == 1:
        return np.full_like(i, (axis.start + axis.end) * last / 2)
    return np.asarray(axis.start * last + i * extent * last / (length - 1))


POSITIONS: dict[str, Callable[[Array, Axis], Array]] = {
    "half_pixel": _half_pixel,
    "tf_half_pixel_for_nn": _tf_half_pixel,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_crop_and_resize": _crop,
}


def taps(form: Form, axis: Axis) -> Taps:
    """What each element of the resized axis reads; of an empty axis nothing."""
    place = POSITIONS[form.positions](np.arange(axis.target, dtype=np.float64), axis)
    crops = form.positions == "tf_crop_and_resize"
    outside = (place < 0) | (place > axis.size - 1) if crops else None
    if form.mode == "nearest":
        index = ROUNDINGS[form.rounding](place)[None]
        return Taps(_inside(index, axis), np.ones(index.shape), outside)
    if form.mode == "linear" and not form.antialias and not form.exclude_outside:
        place = np.clip(place, 0, axis.size - 1)  # the same, and exact at the ends
    scale = min(axis.scale, 1.0) if form.antialias else 1.0
    index = _near(place, {"linear": 1, "cubic": 2}[form.mode] / scale)
    weight = _kernel(form, (index - place) * scale)
    if form.exclude_outside:
        weight = np.where((index < 0) | (index >= axis.size), 0.0, weight)
    if form.exclude_outside or form.antialias:
        weight = weight / weight.sum(0)
    return Taps(_inside(index, axis), weight, outside)


def _near(place: Array, radius: float) -> Array:
    """All elements nearer to ``place`` than ``radius``, and maybe some more."""
    reach = int(np.ceil(radius))
    return np.asarray(np.floor(place) + np.arange(1 - reach, reach + 1)[:, None])


def _inside(index: Array, axis: Axis) -> Array:
    return np.clip(index, 0, axis.size - 1).astype(np.int64)


def _kernel(form: Form, distance: Array) -> Array:
    """The weight of an element by its distance from the position."""
    t = np.abs(distance)
    if form.mode == "linear":
        return np.asarray(np.maximum(1 - t, 0.0))
    # Keys, Cubic convolution interpolation, 1981, equation 15.
    a = form.coefficient
    inner = ((a + 2) * t - (a + 3)) * t * t + 1
    outer = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, inner, np.where(t < 2, outer, 0.0))
