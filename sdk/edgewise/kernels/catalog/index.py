"""Which native functions serve gathering, scattering and one-hot rows."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    blocks,
    kernel,
)
from edgewise.kernels.catalog.calls import given, integer, word
from edgewise.kernels.catalog.copy import COPIES, copy_launch, element_size
from edgewise.kernels.catalog.strides import BLOCK, Walk, around, contiguous, walk
from edgewise.types import DType, TensorType

# Reductions of scattering, by code.
NONE, ADD, MUL, MINIMUM, MAXIMUM = range(5)
REDUCTIONS = {"none": NONE, "add": ADD, "mul": MUL, "min": MINIMUM, "max": MAXIMUM}
# Element types that updates can be joined in, as kernels know them.
KINDS = {DType.F32: 0, DType.I64: 8, DType.I32: 4}
# Types of one-hot indices likewise; the kernel knows bytes, and -1 for signed ones.
INDEX_KINDS = {DType.I64: 8, DType.I32: 4, DType.I8: -1, DType.U8: 1}


def _wide(indices: TensorType) -> int | None:
    """Whether indices are i64, or else i32; ``None`` for others."""
    return {DType.I64: 1, DType.I32: 0}.get(indices.dtype)


@kernel("gather", "gather")
def bind_gather(call: Call) -> Binding | None:
    """Whole slices, as bytes."""
    x, indices, size = given(call, 0), given(call, 1), element_size(call)
    wide = _wide(indices)
    if size is None or wide is None:
        return None
    outer, n, inner = around(x.dims, integer(call, "axis"))
    m, each = math.prod(indices.dims), inner * size
    slices, per_task = outer * m if each else 0, max(1, 4 * BLOCK // max(each, 64))
    numbers = (wide, slices, per_task, n, max(m, 1), each)
    words: tuple[Word, ...] = (In(0), In(1), Out(0), *numbers)
    return Binding((Launch("gather", words, blocks(slices, per_task)),))


def _along(x: TensorType, indices: TensorType, axis: int) -> Walk | None:
    """A walk over ``x`` without the axis, and over the indices."""
    own = contiguous(x.dims)
    steps = tuple(0 if j == axis else step for j, step in enumerate(own))
    return walk(indices.dims, steps, contiguous(indices.dims))


@kernel("gather_elements", "gather_elements")
def bind_gather_elements(call: Call) -> Binding | None:
    """One element for every index."""
    x, indices, axis = given(call, 0), given(call, 1), integer(call, "axis")
    size, wide, path = element_size(call), _wide(indices), _along(x, indices, axis)
    if size is None or wide is None or path is None:
        return None
    place = (wide, size, x.dims[axis], contiguous(x.dims)[axis])
    words: tuple[Word, ...] = (In(0), In(1), Out(0), *place, *path.words)
    return Binding((Launch("gather_elements", words, path.tasks),))


@kernel("gather_nd", "gather_nd")
def bind_gather_nd(call: Call) -> Binding | None:
    """Slices by tuples, batch by batch."""
    x, indices, size = given(call, 0).dims, given(call, 1), element_size(call)
    batch, wide = integer(call, "batch_dims"), _wide(indices)
    if size is None or wide is None:
        return None
    depth = indices.dims[-1]
    axes = x[batch : batch + depth]
    each = math.prod(x[batch + depth :]) * size
    tuples = math.prod(indices.dims[:-1]) if each else 0
    per_task = max(1, 4 * BLOCK // max(each, 64))
    one_batch = max(1, math.prod(indices.dims[batch:-1]))
    steps = (step * each for step in contiguous(axes))
    numbers = (wide, tuples, per_task, depth, each, one_batch)
    batch_bytes = math.prod(x[batch:]) * size
    words: tuple[Word, ...] = (
        *(In(0), In(1), Out(0)),
        *(*numbers, batch_bytes, *axes, *steps),
    )
    return Binding((Launch("gather_nd", words, blocks(tuples, per_task)),))


def _kind(call: Call) -> int | None:
    """How the kernel handles an element: its bytes, or as a type it can compute in."""
    if word(call, "reduction") != "none":
        return KINDS.get(call.outputs[0].dtype)
    size = element_size(call)
    return 0 if size == 4 else size


def _copied(call: Call) -> Launch | None:
    """The launch that starts a scatter: y is x."""
    dims, size = call.outputs[0].dims, element_size(call)
    if size is None:
        return None
    return copy_launch(size, In(0), Out(0), dims, contiguous(dims), contiguous(dims))


@kernel("scatter_elements", "scatter_elements", *COPIES)
def bind_scatter_elements(call: Call) -> Binding | None:
    """In one task: updates of one element must not meet."""
    y, indices, axis = given(call, 0), given(call, 1), integer(call, "axis")
    wide, path, kind = _wide(indices), _along(y, indices, axis), _kind(call)
    copy = _copied(call)
    if wide is None or path is None or kind is None or copy is None:
        return None
    path = path._replace(per_task=max(path.items, 1))
    how = REDUCTIONS[word(call, "reduction")]
    place = (wide, kind, y.dims[axis], contiguous(y.dims)[axis], how)
    words: tuple[Word, ...] = (Out(0), In(1), In(2), *place, *path.words)
    return Binding((copy, Launch("scatter_elements", words, 1)))


@kernel("scatter_nd", "scatter_nd", *COPIES)
def bind_scatter_nd(call: Call) -> Binding | None:
    """In one task: updates of one slice must not meet."""
    y, indices = given(call, 0).dims, given(call, 1)
    wide, kind, copy = _wide(indices), _kind(call), _copied(call)
    if wide is None or kind is None or copy is None:
        return None
    depth = indices.dims[-1]
    count = math.prod(y[depth:])
    size = kind or 4
    tuples = math.prod(indices.dims[:-1]) if count else 0
    steps = (step * count * size for step in contiguous(y[:depth]))
    how = REDUCTIONS[word(call, "reduction")]
    numbers = (wide, tuples, kind, depth, count, how)
    words: tuple[Word, ...] = (Out(0), In(1), In(2), *numbers, *y[:depth], *steps)
    return Binding((copy, Launch("scatter_nd", words, 1)))


@kernel("one_hot", "one_hot")
def bind_one_hot(call: Call) -> Binding | None:
    """Row by row of the new axis."""
    size, kind = element_size(call), INDEX_KINDS.get(given(call, 0).dtype)
    if size is None or kind is None:
        return None
    outer, depth, inner = around(call.outputs[0].dims, integer(call, "axis"))
    rows, per_task = outer * depth, max(1, BLOCK // max(inner, 1))
    numbers = (kind, rows, per_task, depth, inner, size)
    words: tuple[Word, ...] = (In(0), In(1), Out(0), *numbers)
    return Binding((Launch("one_hot", words, blocks(rows, per_task)),))
