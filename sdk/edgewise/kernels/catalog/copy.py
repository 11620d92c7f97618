"""Which native functions serve ops that move elements: transpose, slice, concat."""

from __future__ import annotations

import math
import sys

from edgewise.kernels.catalog.base import (
    MAX_RANK,
    OUT,
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    blocks,
    f16_word,
    f32_word,
    f64_word,
    kernel,
)
from edgewise.kernels.catalog.calls import (
    given,
    integer,
    integers,
    read_steps,
    real,
    word,
    write_steps,
)
from edgewise.kernels.catalog.strides import (
    BLOCK,
    Ints,
    broadcast,
    collapse,
    contiguous,
    walk,
)
from edgewise.types import DType

SIZES = (1, 2, 4, 8)
X_AND_Y = range(OUT, 1)
NARROW = (2, 3, 4)  # columns of a transpose that a kernel of its own writes together
COPIES = (
    *(f"{name}_{size}" for name in ("copy", "transpose") for size in SIZES),
    *(f"interleave_{count}" for count in NARROW),
)
FILLS = tuple(f"fill_{size}" for size in SIZES)
# Modes of padding as the kernel knows them.
REFLECT, EDGE, WRAP = range(3)
MODES = {"reflect": REFLECT, "edge": EDGE, "wrap": WRAP}
STRIP = 16  # rows of the output that a transpose writes together
STRIP_COLUMNS = 256


def element_size(call: Call) -> int | None:
    """Bytes of an element of the output; ``None`` where kernels have no such size."""
    size = call.outputs[0].dtype.bits // 8
    return size if size in SIZES else None


def copy_launch(size: int, x: Word, y: Word, dims: Ints, *steps: Ints) -> Launch | None:
    """Copy ``dims`` elements of ``size`` bytes, from strides to strides."""
    sizes, (from_, to) = collapse(dims, *steps)
    if to[-1] == 1 and from_[-1] > 1 and 1 in from_[:-1] and len(sizes) <= MAX_RANK:
        return _transpose(size, x, y, sizes, from_, to)
    path = walk(dims, *steps)
    if path is None:
        return None
    return Launch(f"copy_{size}", (x, y, *path.words), path.tasks)


def _transpose(
    size: int, x: Word, y: Word, sizes: Ints, from_: Ints, to: Ints
) -> Launch | None:
    axis = from_.index(1)
    outer = tuple(a for a in range(len(sizes) - 1) if a != axis)
    rows, columns = sizes[axis], sizes[-1]
    if size == 4 and columns in NARROW and to[axis] == columns:
        return _interleave(x, y, (sizes, from_, to), axis)
    chunk = min(columns, STRIP_COLUMNS)
    strips, chunks = blocks(rows, STRIP), blocks(columns, chunk)
    items = math.prod(sizes[a] for a in outer) * strips * chunks
    per_task = max(1, BLOCK // (STRIP * chunk))
    words: tuple[Word, ...] = (
        *(x, y, rows, columns, items, per_task, strips, chunks, chunk, len(outer)),
        *(from_[-1], to[axis]),
        *(sizes[a] for a in outer),
        *(from_[a] for a in outer),
        *(to[a] for a in outer),
    )
    return Launch(f"transpose_{size}", words, blocks(items, per_task))


def _interleave(
    x: Word, y: Word, path: tuple[Ints, Ints, Ints], axis: int
) -> Launch | None:
    """Narrow rows of y: those of x, which are as many, element by element."""
    columns, step = path[0][-1], path[1][-1]
    order = [a for a in range(len(path[0]) - 1) if a != axis]
    dims, *steps = (tuple(some[a] for a in (*order, axis)) for some in path)
    way = walk(dims, *steps, block=BLOCK // columns)
    if way is None:
        return None
    return Launch(f"interleave_{columns}", (x, y, step, *way.words), way.tasks)


def _moved(call: Call, dims: Ints, *steps: Ints, offset: int = 0) -> Binding | None:
    """One copy of input 0 into the output."""
    size = element_size(call)
    if size is None:
        return None
    launch = copy_launch(size, In(0, offset * size), Out(0), dims, *steps)
    return Binding((launch,)) if launch else None


@kernel("transpose", *COPIES, strided=X_AND_Y)
def bind_transpose(call: Call) -> Binding | None:
    """Strides of the input, in the order of the output."""
    own = read_steps(call, 0)
    steps = tuple(own[axis] for axis in integers(call, "axes"))
    return _moved(call, call.outputs[0].dims, steps, write_steps(call))


@kernel("reshape", *COPIES)
def bind_reshape(call: Call) -> Binding | None:
    """A plain copy, where the plan cannot give both the same memory."""
    dims = call.outputs[0].dims
    return _moved(call, dims, contiguous(dims), contiguous(dims))


@kernel("slice", *COPIES, strided=X_AND_Y)
def bind_slice(call: Call) -> Binding | None:
    """An offset and longer strides."""
    own, dims = read_steps(call, 0), call.outputs[0].dims
    starts, steps = integers(call, "starts"), integers(call, "steps")
    offset = sum(start * step for start, step in zip(starts, own, strict=True))
    strides = tuple(step * own_ for step, own_ in zip(steps, own, strict=True))
    if 0 in dims:
        offset = 0
    return _moved(call, dims, strides, write_steps(call), offset=offset)


@kernel("expand", *COPIES, strided=X_AND_Y)
def bind_expand(call: Call) -> Binding | None:
    """Strides of zero."""
    dims = call.outputs[0].dims
    steps = broadcast(given(call, 0).dims, dims, read_steps(call, 0))
    return _moved(call, dims, steps, write_steps(call))


@kernel("fill", *COPIES)
def bind_fill(call: Call) -> Binding | None:
    """The one element, everywhere."""
    dims = call.outputs[0].dims
    return _moved(call, dims, (0,) * len(dims), contiguous(dims))


@kernel("tile", *COPIES)
def bind_tile(call: Call) -> Binding | None:
    """Every axis twice: its repeats, with a stride of zero, and itself."""
    own = given(call, 0).dims
    pairs = zip(integers(call, "repeats"), own, contiguous(own), strict=True)
    axes = [axis for count, size, step in pairs for axis in ((count, 0), (size, step))]
    dims = tuple(size for size, _ in axes)
    return _moved(call, dims, tuple(step for _, step in axes), contiguous(dims))


@kernel("concat", *COPIES, strided=range(OUT, sys.maxsize))
def bind_concat(call: Call) -> Binding | None:
    """One copy for each input that is not there yet, behind the one before."""
    size, axis = element_size(call), integer(call, "axis")
    if size is None:
        return None
    to = write_steps(call)
    launches: list[Launch] = []
    offset = 0
    for slot in range(len(call.inputs)):
        dims = given(call, slot).dims
        out = Out(0, offset * to[axis] * size)
        launch = copy_launch(size, In(slot), out, dims, read_steps(call, slot), to)
        if launch is None:
            return None
        if 0 not in dims and slot not in call.placed:
            launches.append(launch)
        offset += dims[axis]
    return Binding(tuple(launches))


def value_word(dtype: DType, value: float) -> int | None:
    """The bits of a number as an element; ``None`` for types kernels do not know."""
    if dtype is DType.F32:
        return f32_word(value)
    if dtype is DType.F64:
        return f64_word(value)
    if dtype is DType.F16:
        return f16_word(value)
    if dtype is DType.BOOL:
        return int(value != 0)
    return int(value) if dtype.is_integer else None


@kernel("pad", *COPIES, *FILLS, "pad")
def bind_pad(call: Call) -> Binding | None:
    """The border filled and the middle copied, or elements looked up one by one."""
    size, own, dims = element_size(call), given(call, 0).dims, call.outputs[0].dims
    pads = integers(call, "pads")
    rank = len(own)
    if size is None or rank > MAX_RANK or not rank:
        return None
    begins, steps = pads[:rank], contiguous(own)
    kept = tuple(
        max(n + min(a, 0) + min(b, 0), 0)
        for n, a, b in zip(own, begins, pads[rank:], strict=True)
    )
    cropped = sum(max(-a, 0) * step for a, step in zip(begins, steps, strict=True))
    before = tuple(max(a, 0) for a in begins)
    x = In(0, cropped * size if 0 not in kept else 0)
    if word(call, "mode") == "constant":
        return _pad_constant(call, x, size, (kept, before, steps))
    rows = math.prod(dims[:-1]) if dims[-1] else 0
    per_task = max(1, BLOCK // max(dims[-1], 1))
    head = (MODES[word(call, "mode")], size, rows, per_task, rank)
    words: tuple[Word, ...] = (x, Out(0), *head, *dims, *kept, *before, *steps)
    return Binding((Launch("pad", words, blocks(rows, per_task)),))


def _pad_constant(
    call: Call, x: In, size: int, place: tuple[Ints, Ints, Ints]
) -> Binding | None:
    kept, before, steps = place
    dims = call.outputs[0].dims
    value = value_word(call.outputs[0].dtype, real(call, "value"))
    to = contiguous(dims)
    offset = sum(a * step for a, step in zip(before, to, strict=True))
    middle = copy_launch(size, x, Out(0, offset * size), kept, steps, to)
    if value is None or middle is None:
        return None
    count = math.prod(dims)
    if kept == dims:
        return Binding((middle,))
    border = Launch(f"fill_{size}", (Out(0), count, BLOCK, value), blocks(count, BLOCK))
    return Binding((border, middle) if 0 not in kept else (border,))


@kernel("triangle", "triangle")
def bind_triangle(call: Call) -> Binding | None:
    """Row by row of all matrices."""
    size, dims = element_size(call), call.outputs[0].dims
    if size is None:
        return None
    *_, height, columns = dims
    rows = math.prod(dims[:-1])
    per_task = max(1, BLOCK // max(columns, 1))
    upper, k = integer(call, "upper"), integer(call, "k")
    shape = (rows, per_task, max(height, 1), columns, size, upper, k)
    words: tuple[Word, ...] = (In(0), Out(0), *shape)
    return Binding((Launch("triangle", words, blocks(rows, per_task)),))


@kernel("arange", "arange_i64")
def bind_arange(call: Call) -> Binding | None:
    """Start, and steps from there."""
    count = integer(call, "count")
    numbers = (count, BLOCK, integer(call, "start"), integer(call, "step"))
    return Binding((Launch("arange_i64", (Out(0), *numbers), blocks(count, BLOCK)),))


@kernel("dim_value", "constants_i64")
def bind_dim_value(call: Call) -> Binding | None:
    """The numbers are words of the call."""
    dims = integers(call, "numbers")
    return Binding((Launch("constants_i64", (Out(0), len(dims), *dims), 1),))
