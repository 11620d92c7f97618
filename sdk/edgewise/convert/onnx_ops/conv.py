"""ONNX convolutions."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.spatial import channels_last, want_image, window
from edgewise.ir.graph import Value
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.ops.shape import Reshape


@onnx_op("Conv")
def _conv(ctx: OpContext) -> Value:
    x, w, bias = ctx[0], ctx[1], ctx.optional(2)
    axes = want_image(ctx, x)
    if w.type.rank != x.type.rank:
        raise ctx.malformed(f"its input is {x.type}, its weight {w.type}")
    kernel = tuple(ctx.whole(size) for size in w.type.shape[2:])
    given = tuple(ctx.attribute("kernel_shape", kernel))
    if given != kernel:
        raise ctx.malformed(f"kernel_shape={list(given)}, but its weight is {w.type}")
    shape = window(ctx, x, kernel)
    outputs, inputs = (ctx.whole(size) for size in w.type.shape[:2])
    groups = int(ctx.attribute("group", 1))
    channels = x.type.shape[1]
    if groups < 1 or outputs % groups or channels != inputs * groups:
        raise ctx.malformed(
            f"its input is {x.type}, its weight {w.type}, with {groups} groups"
        )
    attributes = shape.kernel, shape.strides, shape.pads, shape.dilations
    if groups == outputs == channels and groups > 1:
        taps = w if axes == 2 else ctx.emit(Reshape((outputs, 1, *shape.kernel)), w)
        taps = ctx.emit(PackTaps(), taps)
        thin = DepthwiseConv(*attributes)
        return channels_last(
            ctx, x, lambda image: ctx.emit(thin, image, taps, None, bias, None)
        )
    # The reduction runs over the window, then over input channels.
    order = (*range(2, w.type.rank), 1, 0)
    panels = ctx.emit(PackPanels(order, groups), w)
    wide = Conv(outputs, *attributes, groups)
    return channels_last(
        ctx, x, lambda image: ctx.emit(wide, image, panels, None, bias, None)
    )
