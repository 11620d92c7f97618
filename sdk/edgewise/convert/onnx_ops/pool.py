"""ONNX pooling.

Pooling over three axes and more is pooling over the last two, then over those before:
the largest of largest, and the mean of means over boxes, come to the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import Outputs, onnx_op
from edgewise.convert.onnx_ops.spatial import (
    Window,
    channels_last,
    lifted,
    numbers,
    padded,
    settled,
    want_image,
    window,
)
from edgewise.dims import Dim, product
from edgewise.ir.graph import Value
from edgewise.ir.op import Op
from edgewise.ops.binary import Div, Mul, Pow
from edgewise.ops.create import Fill
from edgewise.ops.image_pool import MaxPoolPlaces
from edgewise.ops.pad import Pad
from edgewise.ops.pool import AveragePool, MaxPool
from edgewise.ops.quantize import limits
from edgewise.ops.reduce import ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceSum
from edgewise.ops.scatter import ScatterElements
from edgewise.ops.shape import Reshape
from edgewise.ops.unary import Abs


@onnx_op("MaxPool")
def _max_pool(ctx: OpContext) -> Outputs:
    x, major = ctx[0], bool(ctx.attribute("storage_order", 0))
    want_image(ctx, x)
    shape = window(ctx, x, _kernel(ctx))
    if len(ctx.node.output) > 1 and ctx.node.output[1]:
        return _max_pool_places(ctx, shape, major)
    kind = x.type.dtype
    lowest = float(limits(kind)[0]) if kind.is_integer else -math.inf
    return channels_last(
        ctx, x, lambda image: _pooled(ctx, *settled(ctx, image, shape, lowest), _max)
    )


def _max(shape: Window) -> Op:
    return MaxPool(*shape.sizes)


def _max_pool_places(ctx: OpContext, shape: Window, major: bool) -> tuple[Value, ...]:
    pads = tuple(ctx.whole(pad) for pad in shape.padded)
    x = ctx[0]
    if x.type.rank > 3:
        op = MaxPoolPlaces(shape.kernel, shape.strides, pads, shape.dilations, major)
        return ctx.emit_all(op, x)
    n, c, length = x.type.shape
    image = ctx.emit(Reshape((n, c, 1, length)), x)
    op = MaxPoolPlaces(shape.kernel, shape.strides, pads, shape.dilations, major)
    found = ctx.emit_all(op, image)
    line = (n, c, found[0].type.shape[3])
    return tuple(ctx.emit(Reshape(line), value) for value in found)


@onnx_op("AveragePool")
def _average_pool(ctx: OpContext) -> Value:
    want_image(ctx, ctx[0])
    shape = window(ctx, ctx[0], _kernel(ctx))
    counted = bool(ctx.attribute("count_include_pad", 0))
    return channels_last(
        ctx, ctx[0], lambda image: _averaged(ctx, image, shape, counted)
    )


def _averaged(ctx: OpContext, image: Value, shape: Window, counted: bool) -> Value:
    if counted and any(shape.extra):
        # Padding counts, what ceil_mode adds does not: so the former becomes data.
        image = padded(ctx, image, shape.pads, 0.0)
        shape, counted = shape._replace(pads=(0,) * len(shape.pads)), False
    data, settled_shape = settled(ctx, image, shape, 0.0)
    if data is image or counted:
        return _pooled(ctx, data, settled_shape, _mean(counted))
    # Zeros do not count: the mean with them, over the share of what is no zero.
    ones = ctx.emit(Fill((1, *image.type.shape[1:-1], 1)), ctx.like(1, image))
    ones, _ = settled(ctx, ones, shape, 0.0)
    share = _pooled(ctx, ones, settled_shape, _mean(True))
    return ctx.emit(Div(), _pooled(ctx, data, settled_shape, _mean(True)), share)


def _mean(counted: bool) -> Callable[[Window], Op]:
    return lambda shape: AveragePool(*shape.sizes, counted)


def _pooled(
    ctx: OpContext, image: Value, shape: Window, make: Callable[[Window], Op]
) -> Value:
    """The channels-last image pooled: its last two axes, then those before."""
    axes = len(shape.kernel)
    if axes == 2:
        return ctx.emit(make(shape), image)
    n, *sizes, channels = image.type.shape
    outer, last = sizes[:-2], sizes[-2:]
    planes = ctx.emit(Reshape((n * product(outer), *last, channels)), image)
    planes = ctx.emit(make(shape.part(slice(axes - 2, None))), planes)
    inside = planes.type.shape[1:]
    rest, sides = shape.part(slice(axes - 2)), list(outer)
    if axes == 3:
        rest, sides = lifted(rest), [1, *outer]
    rows = ctx.emit(Reshape((n, *sides, product(inside))), planes)
    y = _pooled(ctx, rows, rest, make)
    done: tuple[Dim, ...] = y.type.shape[1:-1]
    return ctx.emit(Reshape((n, *(done[1:] if axes == 3 else done), *inside)), y)


def _kernel(ctx: OpContext) -> tuple[int, ...]:
    kernel = ctx.attribute("kernel_shape")
    if kernel is None:
        raise ctx.malformed("kernel_shape is missing")
    return tuple(int(size) for size in np.atleast_1d(kernel))


@onnx_op("LpPool")
def _lp_pool(ctx: OpContext) -> Value:
    want_image(ctx, ctx[0])
    p, shape = _exponent(ctx), window(ctx, ctx[0], _kernel(ctx))
    powers = _powers(ctx, ctx[0], p)

    def apply(image: Value) -> Value:
        data, settled_shape = settled(ctx, image, shape, 0.0)
        mean = _pooled(ctx, data, settled_shape, _mean(True))
        return ctx.emit(Mul(), mean, ctx.like(math.prod(shape.kernel), mean))

    return _root(ctx, channels_last(ctx, powers, apply), p)


def _exponent(ctx: OpContext) -> float:
    p = float(ctx.attribute("p", 2))
    if not p:
        raise ctx.malformed("p=0; want an exponent that has a root")
    return p


def _powers(ctx: OpContext, x: Value, p: float) -> Value:
    size = ctx.emit(Abs(), x)
    return size if p == 1 else ctx.emit(Pow(), size, ctx.like(p, x))


def _root(ctx: OpContext, x: Value, p: float) -> Value:
    return x if p == 1 else ctx.emit(Pow(), x, ctx.like(1 / p, x))


@onnx_op("GlobalAveragePool")
def _global_average_pool(ctx: OpContext) -> Value:
    return ctx.emit(ReduceMean(_spatial(ctx), True), ctx[0])


@onnx_op("GlobalMaxPool")
def _global_max_pool(ctx: OpContext) -> Value:
    return ctx.emit(ReduceMax(_spatial(ctx), True), ctx[0])


@onnx_op("GlobalLpPool")
def _global_lp_pool(ctx: OpContext) -> Value:
    p = _exponent(ctx)
    plain = {1.0: ReduceL1, 2.0: ReduceL2}.get(p)
    if plain is not None:
        return ctx.emit(plain(_spatial(ctx), True), ctx[0])
    total = ctx.emit(ReduceSum(_spatial(ctx), True), _powers(ctx, ctx[0], p))
    return _root(ctx, total, p)


def _spatial(ctx: OpContext) -> tuple[int, ...]:
    return tuple(range(2, ctx[0].type.rank))


@onnx_op("MaxUnpool")
def _max_unpool(ctx: OpContext) -> Value:
    """Elements put back where ``MaxPool`` says that it found them."""
    x, places = ctx[0], ctx[1]
    axes, kernel = want_image(ctx, x), _kernel(ctx)
    strides = numbers(ctx, "strides", axes)
    pads = tuple(ctx.attribute("pads", (0,) * (2 * axes)))
    if len(kernel) != axes or len(pads) != 2 * axes:
        raise ctx.malformed(f"kernel_shape={list(kernel)}, pads={list(pads)}")
    spatial = [
        (size - 1) * stride + span - begin - end
        for size, stride, span, begin, end in zip(
            x.type.shape[2:], strides, kernel, pads[:axes], pads[axes:], strict=True
        )
    ]
    shape = (*x.type.shape[:2], *spatial)
    flat = ctx.emit(Fill((product(shape),)), ctx.like(0, x))
    count = (x.type.elements,)
    flat = ctx.emit(
        ScatterElements(0, "none"),
        flat,
        ctx.emit(Reshape(count), places),
        ctx.emit(Reshape(count), x),
    )
    return _enlarged(ctx, ctx.emit(Reshape(shape), flat))


def _enlarged(ctx: OpContext, y: Value) -> Value:
    """With zeros behind, up to the wanted shape."""
    wanted = ctx.sizes(2)
    if wanted is None or wanted == y.type.shape:
        return y
    if len(wanted) != y.type.rank:
        raise ctx.malformed(f"its output shape {list(wanted)} does not fit {y.type}")
    ends = tuple(a - b for a, b in zip(wanted, y.type.shape, strict=True))
    return ctx.emit(Pad((0,) * len(ends) + ends), y)
