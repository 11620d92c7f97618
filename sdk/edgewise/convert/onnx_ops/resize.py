"""ONNX Resize and Upsample.

Where the sizes are known now, each axis is a few gathers, each by a factor, and their
sum; or a repetition, where it only repeats elements.  Else one op does it at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops import resize_sizes
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.resize_sizes import Target
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Mul
from edgewise.ops.choose import Where
from edgewise.ops.index import Gather
from edgewise.ops.resampling import MODES, POSITIONS, ROUNDINGS, Axis, Form, taps
from edgewise.ops.resize import Resize
from edgewise.ops.shape import Expand, Reshape
from edgewise.types import DType

PROBE = 16  # a whole factor repeats its pattern, so a short axis tells all
# More gathers than these move more memory than the one op reads.
MOST_TAPS = 8
# Longer axes are left to the run, which has to have room for them anyway.
MOST_PLACES = 1 << 20
_Step: TypeAlias = Callable[[Value], Value]
_MODES = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


class _Job(NamedTuple):
    """What to do: the form, the sizes, and what lies outside the image."""

    form: Form
    target: Target
    roi: Value | None = None
    extrapolation: float = 0.0


@onnx_op("Upsample", since=7)
def _upsample(ctx: OpContext) -> Value:
    form = _form(ctx, ctx.attribute("mode", "nearest"), "asymmetric", "floor")
    if ctx.opset >= 9:
        ctx.pin(1, ctx[0].type.rank)
        return _resized(ctx, _Job(form, resize_sizes.scaled(ctx, ctx[1])))
    given = ctx.attribute("scales")
    if given is None:
        raise ctx.malformed("its scales are missing")
    scales = ctx.constant(np.asarray(given, np.float32))
    return _resized(ctx, _Job(form, resize_sizes.scaled(ctx, scales)))


@onnx_op("Upsample")
def _upsample_image(ctx: OpContext) -> Value:
    """The first form: two scales of an image ``[N, C, H, W]``."""
    form = _form(ctx, ctx.attribute("mode", "nearest"), "asymmetric", "floor")
    sides = [ctx.attribute(f"{side}_scale", 1.0) for side in ("height", "width")]
    scales = ctx.constant(np.asarray((1.0, 1.0, *sides), np.float32))
    return _resized(ctx, _Job(form, resize_sizes.scaled(ctx, scales)))


@onnx_op("Resize", since=10)
def _resize_scales(ctx: OpContext) -> Value:
    form = _form(ctx, ctx.attribute("mode", "nearest"), "asymmetric", "floor")
    ctx.pin(1, ctx[0].type.rank)
    return _resized(ctx, _Job(form, resize_sizes.scaled(ctx, ctx[1])))


@onnx_op("Resize", since=11)
def _resize(ctx: OpContext) -> Value:
    form = _form(
        ctx,
        ctx.attribute("mode", "nearest"),
        ctx.attribute("coordinate_transformation_mode", "half_pixel"),
        ctx.attribute("nearest_mode", "round_prefer_floor"),
    )._replace(
        coefficient=float(ctx.attribute("cubic_coeff_a", -0.75)),
        exclude_outside=bool(ctx.attribute("exclude_outside", 0)),
        antialias=bool(ctx.attribute("antialias", 0)),
    )
    axes, policy = ctx.attribute("axes"), ctx.attribute("keep_aspect_ratio_policy")
    if ctx.optional(3) is None:
        ctx.pin(2, len(resize_sizes.chosen(ctx, axes)))
    scales = ctx.optional(2)
    # Beside sizes, scales are there to be empty, of a known length or not.
    if scales is not None and scales.type.is_static and scales.type.elements:
        target = resize_sizes.scaled(ctx, scales, axes)
    else:
        target = resize_sizes.sized(ctx, axes, policy or "stretch")
    extrapolation = float(ctx.attribute("extrapolation_value", 0.0))
    roi = None
    if form.positions == "tf_crop_and_resize":
        roi = resize_sizes.region(ctx, axes)
    return _resized(ctx, _Job(form, target, roi, extrapolation))


def _form(ctx: OpContext, mode: str, positions: str, rounding: str) -> Form:
    mode = _MODES.get(mode, mode)
    if mode not in MODES or positions not in POSITIONS or rounding not in ROUNDINGS:
        raise ctx.unsupported(
            f"resizes by {mode!r}, {positions!r}, {rounding!r}",
            f"use {', '.join(MODES)}; {', '.join(POSITIONS)}; {', '.join(ROUNDINGS)}",
        )
    return Form(mode, positions, rounding)


def _resized(ctx: OpContext, job: _Job) -> Value:
    steps = [_step(ctx, job, axis) for axis in range(ctx[0].type.rank)]
    if None in steps:
        op = Resize(job.target.sizes, *job.form, extrapolation=job.extrapolation)
        return ctx.emit(op, ctx[0], job.target.scales, job.roi)
    y = ctx[0]
    for step in steps:
        y = step(y) if step else y
    return y


def _step(ctx: OpContext, job: _Job, axis: int) -> _Step | None:
    """How the importer resizes one axis; ``None`` where that is left to the run."""
    size, target = ctx[0].type.shape[axis], job.target.sizes[axis]
    factor, crops = job.target.factors[axis], job.form.positions == "tf_crop_and_resize"
    if size == target and factor == 1 and not crops:
        return lambda y: y
    if isinstance(size, int) and isinstance(target, int) and size and factor:
        if max(size, target) > MOST_PLACES:
            return None
        return _picked(ctx, job, axis, Axis(size, target, factor))
    if factor is None or not _repeats(job.form, factor):
        return None
    return lambda y: _repeated(ctx, y, axis, int(factor))


def _repeats(form: Form, factor: float) -> bool:
    """Whether every element is taken ``factor`` times, however many there are."""
    whole = int(factor)
    if form.mode != "nearest" or whole != factor or form.positions in _BY_LENGTH:
        return False
    if PROBE * whole > MOST_PLACES:
        return False
    probe = taps(form, Axis(PROBE, PROBE * whole, factor)).places[0]
    return np.array_equal(probe, np.arange(PROBE * whole) // whole)


# Their pattern depends on the length of the axis.
_BY_LENGTH = ("align_corners", "tf_crop_and_resize", "half_pixel_symmetric")


def _repeated(ctx: OpContext, x: Value, axis: int, factor: int) -> Value:
    shape = x.type.shape
    wide = (*shape[: axis + 1], factor, *shape[axis + 1 :])
    column = ctx.emit(Reshape((*shape[: axis + 1], 1, *shape[axis + 1 :])), x)
    target = (*shape[:axis], shape[axis] * factor, *shape[axis + 1 :])
    return ctx.emit(Reshape(target), ctx.emit(Expand(wide), column))


def _picked(ctx: OpContext, job: _Job, axis: int, line: Axis) -> _Step | None:
    """The sum of a few gathers; ``None`` where they are many, or inexact."""
    if job.roi is not None:
        region = resize_sizes.known(ctx, job.roi)
        if region is None:
            return None
        start, end = region[[axis, axis + ctx[0].type.rank]].tolist()
        line = line._replace(start=start, end=end)
    places, weights, outside = taps(job.form, line)
    plain = job.form.mode == "nearest"
    if not plain and (len(places) > MOST_TAPS or ctx[0].type.dtype is not DType.F32):
        return None

    def step(y: Value) -> Value:
        parts = [ctx.emit(Gather(axis), y, ctx.constant(index)) for index in places]
        column = (-1, *(1,) * (y.type.rank - axis - 1))
        if not plain:
            factors = weights.astype(np.float32).reshape(len(weights), *column)
            pairs = zip(parts, factors, strict=True)
            parts = [ctx.emit(Mul(), part, ctx.constant(w)) for part, w in pairs]
        total = parts[0]
        for part in parts[1:]:
            total = ctx.emit(Add(), total, part)
        if outside is None or not outside.any():
            return total
        other = ctx.like(job.extrapolation, y)
        where = ctx.constant(outside.reshape(column))
        return ctx.emit(Where(), where, other, total)

    return step
