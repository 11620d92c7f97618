"""Images whose channels are second for us as well: resizing, sampling, regions."""

from __future__ import annotations

from typing import Any

from edgewise.convert.to_onnx.arrange import whole
from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.spatial import windows
from edgewise.convert.to_onnx.writer import At
from edgewise.ops.deform import DeformConv
from edgewise.ops.fold import FoldColumns
from edgewise.ops.grid import AffineGrid, GridSample
from edgewise.ops.image_pool import MaxPoolPlaces
from edgewise.ops.region import MaxRoiPool, RoiAlign
from edgewise.ops.resize import Resize
from edgewise.types import DType


@writes(Resize)
def resize(at: At) -> Written:
    """By scales where there are some, else to sizes."""
    op, scales = at.op, at.name(1)
    sizes = "" if scales else at.writer.sizes.vector(op.sizes)
    more: dict[str, Any] = {
        "mode": op.mode,
        "coordinate_transformation_mode": op.positions,
        "extrapolation_value": op.extrapolation,
    }
    if op.mode == "nearest":
        more["nearest_mode"] = op.rounding
    else:
        more["exclude_outside"] = int(op.exclude_outside)
        more["antialias"] = int(op.antialias)
    if op.mode == "cubic":
        more["cubic_coeff_a"] = op.coefficient
    return at.emit("Resize", at.name(0), at.name(2), scales, sizes, **more)


@writes(GridSample)
def grid_sample(at: At) -> Written:
    """Read at places that a grid names."""
    more = {"mode": at.op.mode, "padding_mode": at.op.padding}
    corners = int(at.op.align_corners)
    return at.emit("GridSample", *at.names(), **more, align_corners=corners)


@writes(AffineGrid)
def affine_grid(at: At) -> Written:
    """Places under an affine map."""
    n, axes = at.x.type.shape[0], at.op.sizes
    sizes = at.writer.sizes.vector((n, 1, *axes))
    corners = int(at.op.align_corners)
    return at.emit("AffineGrid", at.name(0), sizes, align_corners=corners)


@writes(MaxPoolPlaces)
def max_pool_places(at: At) -> Written:
    """With where the largest elements are."""
    order = int(at.op.column_major)
    more = windows(at.op) | {"storage_order": order}
    found: tuple[str, ...] = at.emit_all("MaxPool", 2, at.name(0), **more)
    return found


@writes(FoldColumns)
def fold_columns(at: At) -> Written:
    """Columns summed up in their places."""
    op, vector = at.op, at.writer.sizes.vector
    more = windows(op.window)
    del more["kernel_shape"]
    return at.emit("Col2Im", at.name(0), vector(op.sizes), vector(op.block), **more)


@writes(RoiAlign)
def roi_align(at: At) -> Written:
    """Means or largest elements within regions."""
    op = at.op
    images = whole(at, at.value(2), DType.I64)
    return at.emit(
        "RoiAlign",
        *(at.name(0), at.name(1), images),
        output_height=op.height,
        output_width=op.width,
        spatial_scale=op.scale,
        sampling_ratio=op.samples_per_bin,
        mode=op.mode,
        coordinate_transformation_mode=(
            "half_pixel" if op.half_pixel else "output_half_pixel"
        ),
    )


@writes(MaxRoiPool)
def max_roi_pool(at: At) -> Written:
    """The largest elements within bins of regions."""
    more = {
        "pooled_shape": [at.op.height, at.op.width],
        "spatial_scale": at.op.scale,
    }
    return at.emit("MaxRoiPool", *at.names(), **more)


@writes(DeformConv)
def deform_conv(at: At) -> Written:
    """A convolution that reads where offsets say."""
    more = {"group": at.op.groups, "offset_group": at.op.offset_groups}
    return at.emit("DeformConv", *at.names(), **windows(at.op), **more)
