"""ONNX ConvTranspose: one convolution that makes all phases, and their interleaving.

With stride s, element ``s * q + r`` of the result (before it is cropped) is the sum
over t of ``x[q - t] * w[s * t + r]``: for each phase r a plain convolution with the
reversed taps r, r + s, ...  All phases of all axes are output channels of one
convolution, and interleaving them is a transpose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.conv import convolved
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.spatial import (
    Window,
    channels_last,
    explicit_pads,
    numbers,
    padded,
    shared_out,
    want_image,
    with_channels,
)
from edgewise.dims import Dim, ceildiv, floordiv, maximum
from edgewise.ir.graph import Value
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Expand, Reshape, Slice, Transpose


class _Axis(NamedTuple):
    """One spatial axis of the result.

    Attributes:
        stride: How many phases there are.
        span: Taps with those that dilation leaves out.
        begin: Elements cropped in front; negative: zeros put there.
        size: Elements of the result.
    """

    stride: int
    span: int
    begin: Dim
    size: Dim

    @property
    def taps(self) -> int:
        """Taps of each phase."""
        return -(-self.span // self.stride)


@onnx_op("ConvTranspose")
def _conv_transpose(ctx: OpContext) -> Value:
    x, w, bias = ctx[0], ctx[1], ctx.optional(2)
    axes = want_image(ctx, x)
    groups = int(ctx.attribute("group", 1))
    if w.type.rank != axes + 2:
        raise ctx.malformed(f"its input is {x.type}, its weight {w.type}")
    channels = ctx.whole(w.type.shape[0])
    x = with_channels(ctx, x, channels)
    if groups < 1 or channels != x.type.shape[1]:
        raise ctx.malformed(f"its input is {x.type}, its weight {w.type}")
    if channels % groups:
        raise ctx.malformed(f"its weight is {w.type}, with {groups} groups")
    dilations = numbers(ctx, "dilations", axes)
    w = _dilated(ctx, w, dilations)
    found = _axes(ctx, x, w)
    if axes == 1:  # a line is an image of height 1
        c, each, length = w.type.shape
        w = ctx.emit(Reshape((c, each, 1, length)), w)
        found = [_Axis(1, 1, 0, 1), *found]
    weight = _phases(ctx, w, found, groups)
    offset = None if bias is None else _repeated(ctx, bias, found, groups)

    def apply(image: Value) -> Value:
        phases = _convolved(ctx, image, found, weight, offset, groups)
        return _interleaved(ctx, phases, found, groups)

    return channels_last(ctx, x, apply)


def _dilated(ctx: OpContext, w: Value, dilations: tuple[int, ...]) -> Value:
    """The weight with zeros between its taps."""
    kernel = tuple(ctx.whole(size) for size in w.type.shape[2:])
    given = tuple(ctx.attribute("kernel_shape", kernel))
    if given != kernel or min(*kernel, *dilations) < 1:
        raise ctx.malformed(f"kernel_shape={list(given)}, but its weight is {w.type}")
    for axis, step in enumerate(dilations, 2):
        if step == 1:
            continue
        shape = w.type.shape
        head, size, tail = shape[:axis], ctx.whole(shape[axis]), shape[axis + 1 :]
        w = ctx.emit(Reshape((*head, size, 1, *tail)), w)
        w = _extended(ctx, w, axis + 1, step - 1)
        w = ctx.emit(Reshape((*head, size * step, *tail)), w)
        w = _extended(ctx, w, axis, 1 - step)
    return w


def _extended(ctx: OpContext, w: Value, axis: int, count: int) -> Value:
    """With so many zeros behind an axis; with fewer than none, so many cut off."""
    pads = [0] * (2 * w.type.rank)
    pads[w.type.rank + axis] = count
    return ctx.emit(Pad(tuple(pads)), w)


def _axes(ctx: OpContext, x: Value, w: Value) -> list[_Axis]:
    """How each spatial axis of the result comes about."""
    sizes, spans = x.type.shape[2:], tuple(map(ctx.whole, w.type.shape[2:]))
    strides = numbers(ctx, "strides", len(sizes))
    extra = tuple(ctx.attribute("output_padding", (0,) * len(sizes)))
    if len(extra) != len(sizes) or min(strides) < 1 or min(extra) < 0:
        raise ctx.malformed(f"strides={list(strides)}, output_padding={list(extra)}")
    full = [
        (size - 1) * stride + span + more
        for size, stride, span, more in zip(sizes, strides, spans, extra, strict=True)
    ]
    begins, targets = _cropped(ctx, full, sizes, strides)
    return [_Axis(*each) for each in zip(strides, spans, begins, targets, strict=True)]


def _cropped(
    ctx: OpContext, full: list[Dim], sizes: tuple[Dim, ...], strides: tuple[int, ...]
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """What is cropped in front of the whole result, and what is left of it."""
    axes, mode = len(full), ctx.attribute("auto_pad", "NOTSET") or "NOTSET"
    given = ctx.attribute("output_shape")
    if given is None and mode in ("NOTSET", "VALID"):
        pads = explicit_pads(ctx, axes) if mode == "NOTSET" else (0,) * (2 * axes)
        both = zip(full, pads[:axes], pads[axes:], strict=True)
        return pads[:axes], tuple(size - begin - end for size, begin, end in both)
    ctx.ignore("pads")
    products = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    targets: tuple[Dim, ...] = tuple(products if given is None else given[-axes:])
    if len(targets) != axes:
        raise ctx.malformed(f"output_shape={list(targets)}; want {axes} sizes")
    totals = [maximum(a - b, 0) for a, b in zip(full, targets, strict=True)]
    # Where the operator's text leaves it open, the larger half goes in front.
    side = mode if mode == "SAME_UPPER" else "SAME_LOWER"
    return shared_out(ctx, side, totals)[:axes], targets


def _phases(ctx: OpContext, w: Value, found: list[_Axis], groups: int) -> Value:
    """``w[C, O / groups, k...]`` for a convolution with all phases of all outputs."""
    c, each, *kernel = (ctx.whole(size) for size in w.type.shape)
    pads = [axis.taps * axis.stride - axis.span for axis in found]
    if any(pads):
        w = ctx.emit(Pad((0,) * (len(pads) + 4) + tuple(pads)), w)
    split = [part for axis in found for part in (axis.taps, axis.stride)]
    w = ctx.emit(Reshape((groups, c // groups, each, *split)), w)
    taps = range(3, 3 + 2 * len(kernel), 2)
    order = (0, *(axis + 1 for axis in taps), 2, 1, *taps)
    w = ctx.emit(Transpose(order), w)
    phases = math.prod(axis.stride for axis in found)
    sizes = [axis.taps for axis in found]
    w = ctx.emit(Reshape((groups * phases * each, c // groups, *sizes)), w)
    return _reversed(ctx, w)


def _reversed(ctx: OpContext, w: Value) -> Value:
    """The weight with its spatial axes backwards."""
    shape = w.type.shape
    starts = (0, 0, *(size - 1 for size in shape[2:]))
    steps = (1, 1, *(-1,) * (len(shape) - 2))
    return ctx.emit(Slice(starts, shape, steps), w)


def _repeated(ctx: OpContext, bias: Value, found: list[_Axis], groups: int) -> Value:
    """The bias once for every phase."""
    phases = math.prod(axis.stride for axis in found)
    if phases == 1:
        return bias
    each = floordiv(bias.type.elements, groups)
    rows = ctx.emit(Reshape((groups, 1, each)), bias)
    rows = ctx.emit(Expand((groups, phases, each)), rows)
    return ctx.emit(Reshape((groups * phases * each,)), rows)


def _convolved(
    ctx: OpContext,
    image: Value,
    found: list[_Axis],
    weight: Value,
    bias: Value | None,
    groups: int,
) -> Value:
    """All phases as channels; padding that leaves out what is cropped anyway."""
    fronts, backs = [], []
    for axis, size in zip(found, image.type.shape[1:-1], strict=True):
        first = floordiv(axis.begin, axis.stride)
        last = ceildiv(axis.begin + axis.size, axis.stride)
        fronts.append(axis.taps - 1 - first)
        backs.append(last - size)
    pads = (*fronts, *backs)
    ones = (1,) * len(found)
    shape = Window(
        tuple(axis.taps for axis in found), ones, pads, ones, (0,) * len(ones)
    )
    if not all(isinstance(pad, int) and pad >= 0 for pad in pads):
        image, shape = padded(ctx, image, pads, 0.0), shape.bare()
    return convolved(ctx, image, shape, weight, bias, groups)


def _interleaved(
    ctx: OpContext, phases: Value, found: list[_Axis], groups: int
) -> Value:
    """Phases out of the channels into their places, and the ends cropped."""
    n, *sizes, channels = phases.type.shape
    strides = [axis.stride for axis in found]
    count = math.prod(strides)
    each = ctx.whole(channels) // (groups * count)
    k = len(found)
    y = phases
    if count > 1:
        y = ctx.emit(Reshape((n, *sizes, groups, *strides, each)), y)
        pairs = [part for i in range(k) for part in (1 + i, 2 + k + i)]
        y = ctx.emit(Transpose((0, *pairs, 1 + k, 2 + 2 * k)), y)
    whole = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    y = ctx.emit(Reshape((n, *whole, groups * each)), y)
    starts = [axis.begin % axis.stride for axis in found]
    targets = [axis.size for axis in found]
    if targets == whole:
        return y
    shape = (n, *targets, groups * each)
    return ctx.emit(Slice((0, *starts, 0), shape, (1,) * (k + 2)), y)
