"""ONNX operators that read images at places between their elements, or by regions."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.onnx_ops.spatial import explicit_pads, numbers
from edgewise.ir.graph import Value
from edgewise.ops.deform import DeformConv
from edgewise.ops.fold import FoldColumns
from edgewise.ops.grid import AffineGrid, GridSample
from edgewise.ops.region import MaxRoiPool, RoiAlign

_MODES = {"bilinear": "linear", "bicubic": "cubic"}  # as operator set 16 has them


@onnx_op("GridSample", since=16)
def _grid_sample(ctx: OpContext) -> Value:
    mode = ctx.attribute("mode", "linear")
    op = GridSample(
        _MODES.get(mode, mode),
        ctx.attribute("padding_mode", "zeros"),
        bool(ctx.attribute("align_corners", 0)),
    )
    return ctx.emit(op, ctx[0], ctx[1])


@onnx_op("AffineGrid", since=20)
def _affine_grid(ctx: OpContext) -> Value:
    sizes = ctx.sizes(1)
    if sizes is None or len(sizes) < 3:
        raise ctx.malformed(f"its sizes are {sizes}; want [N, C, ...]")
    op = AffineGrid(sizes[2:], bool(ctx.attribute("align_corners", 0)))
    return ctx.emit(op, ctx[0])


@onnx_op("RoiAlign", since=10)
def _roi_align(ctx: OpContext) -> Value:
    # Operator set 16 brought half_pixel, and made it the default.
    default = "half_pixel" if ctx.opset >= 16 else "output_half_pixel"
    shift = ctx.attribute("coordinate_transformation_mode", default).lower()
    if shift not in ("half_pixel", "output_half_pixel"):
        raise ctx.malformed(f"coordinate_transformation_mode={shift!r}")
    op = RoiAlign(
        int(ctx.attribute("output_height", 1)),
        int(ctx.attribute("output_width", 1)),
        ctx.attribute("spatial_scale", 1.0),
        ctx.attribute("mode", "avg").lower(),
        max(int(ctx.attribute("sampling_ratio", 0)), 0),
        shift == "half_pixel",
    )
    return ctx.emit(op, ctx[0], ctx[1], ctx[2])


@onnx_op("MaxRoiPool")
def _max_roi_pool(ctx: OpContext) -> Value:
    size = tuple(ctx.attribute("pooled_shape", ()))
    if len(size) != 2:
        raise ctx.malformed(f"pooled_shape={list(size)}; want height and width")
    op = MaxRoiPool(*size, ctx.attribute("spatial_scale", 1.0))
    return ctx.emit(op, ctx[0], ctx[1])


@onnx_op("DeformConv", since=19)
def _deform_conv(ctx: OpContext) -> Value:
    kernel = tuple(ctx.whole(size) for size in ctx[1].type.shape[2:])
    if tuple(ctx.attribute("kernel_shape", kernel)) != kernel:
        raise ctx.malformed(f"its kernel_shape is not that of its weight {ctx[1].type}")
    axes = len(kernel)
    op = DeformConv(
        kernel,
        numbers(ctx, "strides", axes),
        explicit_pads(ctx, axes),
        numbers(ctx, "dilations", axes),
        int(ctx.attribute("group", 1)),
        int(ctx.attribute("offset_group", 1)),
    )
    return ctx.emit(op, ctx[0], ctx[1], ctx[2], ctx.optional(3), ctx.optional(4))


@onnx_op("Col2Im", since=18)
def _col2im(ctx: OpContext) -> Value:
    sizes, block = ctx.sizes(1), ctx.sizes(2)
    if sizes is None or block is None or len(sizes) != len(block):
        raise ctx.malformed(f"folds blocks {block} into an image {sizes}")
    axes = len(sizes)
    op = FoldColumns(
        sizes,
        block,
        numbers(ctx, "strides", axes),
        explicit_pads(ctx, axes),
        numbers(ctx, "dilations", axes),
    )
    return ctx.emit(op, ctx[0])


@onnx_op("ImageDecoder", since=20)
def _image_decoder(ctx: OpContext) -> Value:
    raise ctx.unsupported(
        "reads the bytes of an image file",
        "decode images before, feed arrays",
    )
