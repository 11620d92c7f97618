"""ONNX pooling."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.spatial import channels_last, want_image, window
from edgewise.ir.graph import Value
from edgewise.ops.pad import Pad
from edgewise.ops.pool import AveragePool, MaxPool
from edgewise.ops.reduce import ReduceMax, ReduceMean


@onnx_op("MaxPool")
def _max_pool(ctx: OpContext) -> Value:
    want_image(ctx, ctx[0])
    ctx.ignore("storage_order")  # speaks of the indices, which are not computed
    shape = window(ctx, ctx[0], _kernel(ctx))
    pool = MaxPool(shape.kernel, shape.strides, shape.padded, shape.dilations)
    return channels_last(ctx, ctx[0], lambda image: ctx.emit(pool, image))


@onnx_op("AveragePool")
def _average_pool(ctx: OpContext) -> Value:
    want_image(ctx, ctx[0])
    shape = window(ctx, ctx[0], _kernel(ctx))
    counted = bool(ctx.attribute("count_include_pad", 0))
    attributes = shape.kernel, shape.strides
    if not counted or not any(shape.extra):
        pool = AveragePool(*attributes, shape.padded, shape.dilations, counted)
        return channels_last(ctx, ctx[0], lambda image: ctx.emit(pool, image))
    # Padding counts, what ceil_mode adds does not: so the former becomes data.
    top, left, bottom, right = shape.pads
    pad = Pad((0, top, left, 0, 0, bottom, right, 0), "constant", 0.0)
    pool = AveragePool(*attributes, (0, 0, *shape.extra), shape.dilations, False)
    return channels_last(
        ctx, ctx[0], lambda image: ctx.emit(pool, ctx.emit(pad, image))
    )


def _kernel(ctx: OpContext) -> tuple[int, ...]:
    kernel = ctx.attribute("kernel_shape")
    if kernel is None:
        raise ctx.malformed("kernel_shape is missing")
    return tuple(int(size) for size in np.atleast_1d(kernel))


@onnx_op("GlobalAveragePool")
def _global_average_pool(ctx: OpContext) -> Value:
    return ctx.emit(ReduceMean(_spatial(ctx), True), ctx[0])


@onnx_op("GlobalMaxPool")
def _global_max_pool(ctx: OpContext) -> Value:
    return ctx.emit(ReduceMax(_spatial(ctx), True), ctx[0])


def _spatial(ctx: OpContext) -> tuple[int, ...]:
    return tuple(range(2, ctx[0].type.rank))
