"""What looks elements up, and what puts them into places."""

from __future__ import annotations

from edgewise.convert.to_onnx.arrange import whole
from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.ops import index
from edgewise.ops.scatter import ScatterElements, ScatterNd
from edgewise.types import DType


@writes(index.Gather)
def gather(at: At) -> Written:
    """Slices."""
    return at.emit("Gather", *at.names(), axis=at.op.axis)


@writes(index.GatherElements)
def gather_elements(at: At) -> Written:
    """Elements along an axis."""
    return at.emit("GatherElements", *at.names(), axis=at.op.axis)


@writes(index.GatherNd)
def gather_nd(at: At) -> Written:
    """Slices by several indices."""
    places = whole(at, at.value(1), DType.I64)
    return at.emit("GatherND", at.name(0), places, batch_dims=at.op.batch_dims)


@writes(index.OneHot)
def one_hot(at: At) -> Written:
    """One of two values at every place."""
    depth = at.writer.sizes.scalar(at.op.depth)
    return at.emit("OneHot", at.name(0), depth, at.name(1), axis=at.op.axis)


@writes(index.Triangle)
def triangle(at: At) -> Written:
    """What lies above or below a diagonal."""
    k = at.writer.sizes.scalar(at.op.k)
    return at.emit("Trilu", at.name(0), k, upper=int(at.op.upper))


@writes(ScatterElements)
def scatter_elements(at: At) -> Written:
    """Elements along an axis."""
    more = {"axis": at.op.axis, "reduction": at.op.reduction}
    return at.emit("ScatterElements", *at.names(), **more)


@writes(ScatterNd)
def scatter_nd(at: At) -> Written:
    """Slices by several indices."""
    names = (at.name(0), whole(at, at.value(1), DType.I64), at.name(2))
    return at.emit("ScatterND", *names, reduction=at.op.reduction)
