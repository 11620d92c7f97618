"""Ops that move elements, and those that make them of sizes."""

from __future__ import annotations

from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.writer import At, channels_second
from edgewise.dims import Dim, product
from edgewise.ir.graph import Value
from edgewise.ops import create, shape
from edgewise.ops.bindings import ReadDims
from edgewise.ops.pad import Pad
from edgewise.types import DType


@writes(shape.Reshape)
def reshape(at: At) -> Written:
    """With a -1 where one size is open, and codes where the first ones stay."""
    given, wanted = at.x.type.shape, at.op.shape
    is_open = [j for j, dim in enumerate(wanted) if not isinstance(dim, int)]
    if is_open and 0 not in wanted:
        codes = [dim if isinstance(dim, int) else 0 for dim in wanted]
        codes[is_open[-1]] = -1
        if len(is_open) == 1:
            return at.emit("Reshape", _flat(at), at.integers(*codes))
        if all(given[j : j + 1] == (wanted[j],) for j in is_open[:-1]):
            return at.emit("Reshape", at.name(0), at.integers(*codes))
    return at.emit("Reshape", _flat(at), at.writer.sizes.vector(wanted), allowzero=1)


def _flat(at: At) -> str:
    """The input, its elements in order: with one place or one channel either form."""
    sizes = at.x.type.shape
    if at.writer.is_image(at.x) and 1 in (sizes[-1], product(sizes[1:-1])):
        return at.image(0)
    return at.name(0)


@writes(shape.Transpose)
def transpose(at: At) -> Written:
    """Nothing where it turns an image into the other of its two forms."""
    axes, rank = at.op.axes, at.x.type.rank
    if axes == tuple(range(rank)):
        return Image(at.image(0)) if at.writer.is_image(at.x) else at.name(0)
    if rank > 2 and axes == channels_second(rank):
        return at.image(0)
    if rank > 2 and axes == (0, *range(2, rank), 1) and not at.writer.is_image(at.x):
        return Image(at.name(0))
    if at.writer.is_image(at.x):
        places = channels_second(rank)
        moved = [places.index(axis) for axis in axes]
        return at.emit("Transpose", at.image(0), perm=moved)
    return at.emit("Transpose", at.name(0), perm=list(axes))


@writes(shape.Concat)
def concat(at: At) -> Written:
    """One after the other."""
    axis, values = at.op.axis, at.inputs
    if any(map(at.writer.is_image, values)):
        names = [at.image(index) for index in range(len(values))]
        place = channels_second(at.y.type.rank).index(axis)
        return Image(at.emit("Concat", *names, axis=place))
    return at.emit("Concat", *at.names(), axis=axis)


@writes(shape.Slice)
def slice_(at: At) -> Written:
    """Only along the axes that it cuts."""
    op, whole = at.op, at.x.type.shape
    cut = [
        axis
        for axis, size in enumerate(whole)
        if (op.starts[axis], op.sizes[axis], op.steps[axis]) != (0, size, 1)
    ]
    image = at.writer.is_image(at.x)
    places = channels_second(len(whole)) if image else tuple(range(len(whole)))
    name = at.image(0) if image else at.name(0)
    if cut:
        ends = [_end(at, axis) for axis in cut]
        vector = at.writer.sizes.vector
        starts = vector([op.starts[axis] for axis in cut])
        axes = at.integers(*(places.index(axis) for axis in cut))
        steps = at.integers(*(op.steps[axis] for axis in cut))
        name = at.emit("Slice", name, starts, vector(ends), axes, steps)
    return Image(name) if image else name


def _end(at: At, axis: int) -> Dim:
    """Where a slice ends; backwards it counts from behind, as 0 has nothing before."""
    op = at.op
    end: Dim = op.starts[axis] + op.sizes[axis] * op.steps[axis]
    behind: Dim = end - at.x.type.shape[axis]
    return behind if op.steps[axis] < 0 else end


@writes(Pad)
def pad(at: At) -> Written:
    """In front of and behind each axis."""
    op, rank = at.op, at.x.type.rank
    value = at.number(op.value, at.x) if op.mode == "constant" else ""
    pads, name = op.pads, at.writer.name
    if at.writer.is_image(at.x):
        places = channels_second(rank)
        pads = tuple(op.pads[side + axis] for side in (0, rank) for axis in places)
        name = at.writer.image
    vector = at.writer.sizes.vector(pads)
    found = at.emit("Pad", name(at.x), vector, value, mode=op.mode)
    return Image(found) if at.writer.is_image(at.x) else found


@writes(shape.Expand)
def expand(at: At) -> Written:
    """To larger sizes."""
    return at.emit("Expand", at.name(0), at.writer.sizes.vector(at.op.shape))


@writes(shape.Tile)
def tile(at: At) -> Written:
    """So many times along each axis."""
    return at.emit("Tile", at.name(0), at.writer.sizes.vector(at.op.repeats))


@writes(create.Fill)
def fill(at: At) -> Written:
    """A scalar everywhere."""
    return at.emit("Expand", at.name(0), at.writer.sizes.vector(at.op.shape))


@writes(create.Arange)
def arange(at: At) -> Written:
    """Numbers at a distance."""
    op, scalar = at.op, at.writer.sizes.scalar
    end = op.start + op.count * op.step
    return at.emit("Range", scalar(op.start), scalar(end), scalar(op.step))


@writes(create.DimValue)
def dim_value(at: At) -> Written:
    """Sizes themselves."""
    sizes = at.writer.sizes
    return sizes.scalar(at.op.dims[0]) if at.op.scalar else sizes.vector(at.op.dims)


@writes(ReadDims)
def read_dims(at: At) -> Written:
    """Nothing is done: from here on its elements are known as sizes."""
    name = at.name(0)
    whole = name if at.x.type.dtype is DType.I64 else at.cast(name, DType.I64)
    at.writer.sizes.read_vector(whole, at.op.names)
    return name


def whole(at: At, value: Value, to: DType) -> str:
    """Whole numbers of the type that an operator wants."""
    name = at.writer.name(value)
    return name if value.type.dtype is to else at.cast(name, to)
