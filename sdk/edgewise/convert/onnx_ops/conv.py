"""ONNX convolutions."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.spatial import (
    Window,
    channels_last,
    padded,
    settled,
    want_image,
    window,
    with_channels,
)
from edgewise.dims import Dim, floordiv
from edgewise.ir.graph import Value
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.ops.shape import Reshape, Slice


@onnx_op("Conv")
def _conv(ctx: OpContext) -> Value:
    x, w, bias = ctx[0], ctx[1], ctx.optional(2)
    x, shape, groups = convolution(ctx, x, w)

    def apply(image: Value) -> Value:
        return convolved(ctx, *settled(ctx, image, shape, 0.0), w, bias, groups)

    return channels_last(ctx, x, apply)


def convolution(ctx: OpContext, x: Value, w: Value) -> tuple[Value, Window, int]:
    """Image, window, groups of a convolution of ``x`` by ``w[O, C / groups, ...]``."""
    want_image(ctx, x)
    if w.type.rank != x.type.rank:
        raise ctx.malformed(f"its input is {x.type}, its weight {w.type}")
    kernel = tuple(ctx.whole(size) for size in w.type.shape[2:])
    given = tuple(ctx.attribute("kernel_shape", kernel))
    if given != kernel:
        raise ctx.malformed(f"kernel_shape={list(given)}, but its weight is {w.type}")
    groups = int(ctx.attribute("group", 1))
    outputs, inputs = (ctx.whole(size) for size in w.type.shape[:2])
    x = with_channels(ctx, x, inputs * groups)
    if groups < 1 or outputs % groups or x.type.shape[1] != inputs * groups:
        raise ctx.malformed(
            f"its input is {x.type}, its weight {w.type}, with {groups} groups"
        )
    return x, window(ctx, x, kernel), groups


def convolved(
    ctx: OpContext,
    image: Value,
    shape: Window,
    w: Value,
    bias: Value | None,
    groups: int,
    residual: Value | None = None,
) -> Value:
    """The channels-last image under ``w[O, C / groups, ...]``, plus ``residual``.

    From three spatial axes on it is a sum over the taps of the first: for each, the
    convolution of the slices that it sees, as so many images of one axis less.
    """
    if len(shape.kernel) == 2:
        return _plane(ctx, image, shape, w, bias, groups, residual)
    outer, inner = shape.part(slice(1)), shape.part(slice(1, None))
    (before, after), rest = outer.pads, (0,) * len(inner.kernel)
    if before or after:
        image = padded(ctx, image, (before, *rest, after, *rest), 0.0)
    reach = (outer.kernel[0] - 1) * outer.dilations[0] + 1
    n, size = image.type.shape[:2]
    count = floordiv(size - reach, outer.strides[0]) + 1
    total = residual
    if residual is not None:
        total = ctx.emit(Reshape((n * count, *residual.type.shape[2:])), residual)
    for tap in range(outer.kernel[0]):
        start = tap * outer.dilations[0]
        seen = _slices(ctx, image, start, count, outer.strides[0])
        taps = _tap(ctx, w, tap)
        offset = bias if tap == 0 else None
        total = convolved(ctx, seen, inner, taps, offset, groups, total)
    if total is None:
        raise ctx.malformed(f"its weight is {w.type}, without a tap")
    return ctx.emit(Reshape((n, count, *total.type.shape[1:])), total)


def _slices(ctx: OpContext, image: Value, start: int, count: Dim, step: int) -> Value:
    """Every ``step``-th slice of the first spatial axis, as an image of its own."""
    shape = image.type.shape
    starts = (0, start, *(0,) * (len(shape) - 2))
    steps = (1, step, *(1,) * (len(shape) - 2))
    seen = ctx.emit(Slice(starts, (shape[0], count, *shape[2:]), steps), image)
    return ctx.emit(Reshape((shape[0] * count, *shape[2:])), seen)


def _tap(ctx: OpContext, w: Value, tap: int) -> Value:
    """The weight at one place of its first spatial axis."""
    shape = w.type.shape
    starts = (0, 0, tap, *(0,) * (len(shape) - 3))
    sizes = (*shape[:2], 1, *shape[3:])
    part = ctx.emit(Slice(starts, sizes, (1,) * len(shape)), w)
    return ctx.emit(Reshape((*shape[:2], *shape[3:])), part)


def _plane(
    ctx: OpContext,
    image: Value,
    shape: Window,
    w: Value,
    bias: Value | None,
    groups: int,
    residual: Value | None,
) -> Value:
    outputs = ctx.whole(w.type.shape[0])
    if groups == outputs == image.type.shape[3] and groups > 1:
        taps = w
        if w.type.rank == 3:
            taps = ctx.emit(Reshape((outputs, 1, *shape.kernel)), w)
        taps = ctx.emit(PackTaps(), taps)
        return ctx.emit(DepthwiseConv(*shape.sizes), image, taps, None, bias, residual)
    # The reduction runs over the window, then over input channels.
    order = (*range(2, w.type.rank), 1, 0)
    panels = ctx.emit(PackPanels(order, groups), w)
    op = Conv(outputs, *shape.sizes, groups)
    return ctx.emit(op, image, panels, None, bias, residual)
