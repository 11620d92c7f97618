"""ONNX Resize and Upsample, as gathers along each axis and sums of two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ir.op import Array
from edgewise.ops.binary import Add, Mul
from edgewise.ops.index import Gather
from edgewise.ops.shape import Expand, Reshape

PROBE = 16  # a whole factor repeats its pattern, so a short axis tells all


class _Axis(NamedTuple):
    """How one axis is resized: to ``size`` elements, by ``scale``."""

    axis: int
    size: Dim
    scale: float


@onnx_op("Upsample", since=7)
def _upsample(ctx: OpContext) -> Value:
    mode = ctx.attribute("mode", "nearest")
    scales = ctx.attribute("scales") if ctx.opset < 9 else ctx.fixed(1)
    if scales is None:
        raise ctx.malformed("its scales are missing")
    form = _Form(mode, "asymmetric", "floor")
    return _apply(ctx, form, _scaled(ctx, np.asarray(scales), None))


@onnx_op("Resize", since=10)
def _resize_scales(ctx: OpContext) -> Value:
    scales = ctx.fixed(1)
    if scales is None:
        raise ctx.malformed("its scales are missing")
    form = _Form(ctx.attribute("mode", "nearest"), "asymmetric", "floor")
    return _apply(ctx, form, _scaled(ctx, scales, None))


@onnx_op("Resize", since=11)
def _resize(ctx: OpContext) -> Value:
    ctx.ignore("cubic_coeff_a", "exclude_outside", "extrapolation_value")
    if ctx.attribute("antialias", 0):
        raise ctx.unsupported("filters before it shrinks (antialias)", "leave it out")
    policy = ctx.attribute("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        raise ctx.unsupported(f"keeps the aspect ratio ({policy})", "use stretch")
    form = _Form(
        ctx.attribute("mode", "nearest"),
        ctx.attribute("coordinate_transformation_mode", "half_pixel"),
        ctx.attribute("nearest_mode", "round_prefer_floor"),
    )
    axes = ctx.attribute("axes")
    scales = ctx.fixed(2)
    if scales is not None and scales.size:
        return _apply(ctx, form, _scaled(ctx, scales, axes))
    return _apply(ctx, form, _sized(ctx, axes))


def _scaled(ctx: OpContext, scales: Array, axes: tuple[int, ...] | None) -> list[_Axis]:
    shape = ctx[0].type.shape
    chosen = range(len(shape)) if axes is None else axes
    if len(scales) != len(chosen) or not (scales > 0).all():
        raise ctx.malformed(f"its scales {scales.tolist()} do not fit {ctx[0].type}")
    found = []
    for axis, scale in zip(chosen, scales.tolist(), strict=True):
        normal = ctx.normal(axis, len(shape))
        size = shape[normal]
        if float(scale).is_integer():
            found.append(_Axis(normal, size * int(scale), scale))
        else:
            target = int(np.floor(np.float32(scale) * ctx.whole(size)))
            found.append(_Axis(normal, target, scale))
    return found


def _sized(ctx: OpContext, axes: tuple[int, ...] | None) -> list[_Axis]:
    shape, sizes = ctx[0].type.shape, ctx.sizes(3)
    chosen = range(len(shape)) if axes is None else axes
    if sizes is None or len(sizes) != len(chosen):
        raise ctx.malformed(f"its sizes do not fit {ctx[0].type}")
    found = []
    for axis, size in zip(chosen, sizes, strict=True):
        normal = ctx.normal(axis, len(shape))
        before = shape[normal]
        factor = _whole_factor(before, size)
        scale = factor or ctx.whole(size) / ctx.whole(before)
        found.append(_Axis(normal, size, float(scale)))
    return found


def _whole_factor(before: Dim, after: Dim) -> int | None:
    if before == 0:
        return None
    factor = after // before
    return factor if isinstance(factor, int) and factor * before == after else None


class _Form(NamedTuple):
    """Kind of interpolation, and how positions are mapped and rounded."""

    mode: str
    positions: str
    rounding: str


def _apply(ctx: OpContext, form: _Form, axes: list[_Axis]) -> Value:
    x = ctx[0]
    kind = {"nearest": _nearest, "linear": _linear, "bilinear": _linear}.get(form.mode)
    if kind is None:
        raise ctx.unsupported(f"has mode {form.mode!r}", "use nearest or linear")
    for axis in axes:
        if x.type.shape[axis.axis] != axis.size:
            x = kind(ctx, form, x, axis)
    return x


def _sources(ctx: OpContext, form: _Form, size: int, axis: _Axis, count: int) -> Array:
    """Where in the source each of ``count`` elements of the result lies."""
    rule = _POSITIONS.get(form.positions)
    if rule is None:
        raise ctx.unsupported(
            f"maps positions by {form.positions!r}",
            f"use one of {', '.join(_POSITIONS)}",
        )
    return rule(np.arange(count, dtype=np.float64), axis.scale, size, count)


_Rule = Callable[[Array, float, int, int], Array]


def _half_pixel(i: Array, scale: float, _size: int, _count: int) -> Array:
    return np.asarray((i + 0.5) / scale - 0.5)


def _tf_half_pixel(i: Array, scale: float, _size: int, _count: int) -> Array:
    return np.asarray((i + 0.5) / scale)


def _pytorch_half_pixel(i: Array, scale: float, size: int, count: int) -> Array:
    return _half_pixel(i, scale, size, count) if count > 1 else np.zeros_like(i)


def _half_pixel_symmetric(i: Array, scale: float, size: int, count: int) -> Array:
    adjustment = count / (scale * size)
    return np.asarray(size / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5)


def _align_corners(i: Array, _scale: float, size: int, count: int) -> Array:
    return np.asarray(i * (size - 1) / (count - 1)) if count > 1 else np.zeros_like(i)


def _asymmetric(i: Array, scale: float, _size: int, _count: int) -> Array:
    return np.asarray(i / scale)


_POSITIONS: dict[str, _Rule] = {
    "half_pixel": _half_pixel,
    "tf_half_pixel_for_nn": _tf_half_pixel,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
}
_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _nearest(ctx: OpContext, form: _Form, x: Value, axis: _Axis) -> Value:
    size = x.type.shape[axis.axis]
    if not isinstance(size, int):
        return _repeated(ctx, form, x, axis)
    index = _nearest_index(ctx, form, size, axis, ctx.whole(axis.size))
    return ctx.emit(Gather(axis.axis), x, ctx.constant(index))


def _nearest_index(
    ctx: OpContext, form: _Form, size: int, axis: _Axis, count: int
) -> Array:
    rounding = _ROUNDING.get(form.rounding)
    if rounding is None:
        raise ctx.malformed(f"rounds by {form.rounding!r}")
    index = rounding(_sources(ctx, form, size, axis, count))
    return np.clip(index, 0, size - 1).astype(np.int64)


def _repeated(ctx: OpContext, form: _Form, x: Value, axis: _Axis) -> Value:
    """Every element ``factor`` times: nearest by a whole factor of an unknown size."""
    factor = int(axis.scale)
    probe = _nearest_index(ctx, form, PROBE, axis, PROBE * factor)
    plain = np.array_equal(probe, np.arange(PROBE * factor) // max(factor, 1))
    if factor != axis.scale or not plain or form.positions == "align_corners":
        raise ctx.unsupported(
            "resizes an axis whose size only a run knows by more than repeating",
            "give fixed input_shapes",
        )
    shape, at = x.type.shape, axis.axis
    wide = (*shape[: at + 1], factor, *shape[at + 1 :])
    column = ctx.emit(Reshape((*shape[: at + 1], 1, *shape[at + 1 :])), x)
    target = (*shape[:at], axis.size, *shape[at + 1 :])
    return ctx.emit(Reshape(target), ctx.emit(Expand(wide), column))


def _linear(ctx: OpContext, form: _Form, x: Value, axis: _Axis) -> Value:
    size, count = ctx.whole(x.type.shape[axis.axis]), ctx.whole(axis.size)
    place = np.clip(_sources(ctx, form, size, axis, count), 0, size - 1)
    low = np.floor(place).astype(np.int64)
    share = (place - low).astype(x.type.dtype.numpy)
    column = (-1, *(1,) * (x.type.rank - axis.axis - 1))
    parts = []
    for index, weight in ((low, 1 - share), (np.minimum(low + 1, size - 1), share)):
        picked = ctx.emit(Gather(axis.axis), x, ctx.constant(index))
        weights = ctx.constant(weight.reshape(column))
        parts.append(ctx.emit(Mul(), picked, weights))
    return ctx.emit(Add(), *parts)
