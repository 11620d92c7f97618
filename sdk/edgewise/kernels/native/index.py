"""Gathering and scattering by index: every index is checked before it is used.

Negative indices count from the end.  Words ``wide`` say whether indices are i64 (or
else i32).  One out of range stops the kernel with a status.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.index import ADD, MINIMUM, MUL, NONE
from edgewise.kernels.native.abi import (
    INDEX_OUT_OF_RANGE,
    OK,
    f32,
    helper,
    i8,
    i32,
    i64,
    u8,
)
from edgewise.kernels.native.walk import (
    copy_run,
    end_item,
    first_item,
    move,
    offset_2,
    quotient,
    row_span,
)


@helper
def index_at(indices, wide, position, size):
    """The index at ``position`` in an axis of ``size``; -1 where it is out of range."""
    index = i64(indices)[position] if wide != 0 else np.int64(i32(indices)[position])
    if index < 0:
        index += size
    return index if 0 <= index < size else np.int64(-1)


def gather(args, begin, end, worker):
    """Slices along an axis.

    Words: x, indices, y, wide, slices of y, slices a task, size of the axis, indices,
    bytes a slice.
    """
    n, m, size = args[6], args[7], args[8]
    for item in range(begin * args[5], min(end * args[5], args[4])):
        outer = quotient(item, m)
        index = index_at(args[1], args[3], item - outer * m, n)
        if index < 0:
            return INDEX_OUT_OF_RANGE
        copy_run(args[2] + item * size, args[0] + (outer * n + index) * size, size)
    return OK


def gather_elements(args, begin, end, worker):
    """Elements along an axis.

    Words: x, indices, y, wide, bytes an element, size of the axis, its stride; then a
    walk over x without the axis, and the indices.
    """
    size, n, step = args[4], args[5], args[6]
    for item in range(first_item(args, 7, begin), end_item(args, 7, end)):
        row, start, count = row_span(args, 7, item)
        at_x, at = offset_2(args, 7, row)
        for j in range(start, start + count):
            place = at + j * args[14]
            index = index_at(args[1], args[3], place, n)
            if index < 0:
                return INDEX_OUT_OF_RANGE
            source = args[0] + size * (at_x + j * args[13] + index * step)
            move(args[2] + size * place, source, size)
    return OK


@helper
def slice_offset(args, at, indices, wide, depth, position):
    """Byte offset of the slice that a tuple of indices names; -1 out of range.

    From word ``at``: sizes of the axes, then bytes of one step along each.
    """
    total = np.int64(0)
    for k in range(depth):
        index = index_at(indices, wide, position * depth + k, args[at + k])
        if index < 0:
            return np.int64(-1)
        total += index * args[at + depth + k]
    return total


def gather_nd(args, begin, end, worker):
    """Slices by tuples of indices.

    Words: x, indices, y, wide, tuples, tuples a task, indices a tuple, bytes a slice,
    tuples a batch, bytes of x a batch; then sizes and steps of the axes.
    """
    depth, size = args[6], args[7]
    for item in range(begin * args[5], min(end * args[5], args[4])):
        at = slice_offset(args, 10, args[1], args[3], depth, item)
        if at < 0:
            return INDEX_OUT_OF_RANGE
        source = args[0] + quotient(item, args[8]) * args[9] + at
        copy_run(args[2] + item * size, source, size)
    return OK


@helper
def joined(how, old, new):
    """What a reduction makes of an element and its update."""
    if how == ADD:
        return old + new
    if how == MUL:
        return old * new
    if new != new:
        return new
    if how == MINIMUM:
        return new if new < old else old
    return new if new > old else old


@helper
def join(kind, how, target, source):
    """Join one update into its element: ``kind`` is its bytes, or 0 for f32."""
    if how == NONE:
        move(target, source, 4 if kind == 0 else kind)
    elif kind == 0:
        f32(target)[0] = joined(how, f32(target)[0], f32(source)[0])
    elif kind == 8:
        i64(target)[0] = joined(how, i64(target)[0], i64(source)[0])
    else:
        i32(target)[0] = joined(how, np.int64(i32(target)[0]), np.int64(i32(source)[0]))


def scatter_elements(args, begin, end, worker):
    """Updates along an axis, one after the other.

    Words: y, indices, updates, wide, kind of element, size of the axis, its stride,
    reduction; then a walk over y without the axis, and the indices.
    """
    kind, n, step, how = args[4], args[5], args[6], args[7]
    size = 4 if kind == 0 else kind
    for item in range(first_item(args, 8, begin), end_item(args, 8, end)):
        row, start, count = row_span(args, 8, item)
        at_y, at = offset_2(args, 8, row)
        for j in range(start, start + count):
            place = at + j * args[15]
            index = index_at(args[1], args[3], place, n)
            if index < 0:
                return INDEX_OUT_OF_RANGE
            target = args[0] + size * (at_y + j * args[14] + index * step)
            join(kind, how, target, args[2] + size * place)
    return OK


def scatter_nd(args, begin, end, worker):
    """Slices stored by tuples of indices, one after the other.

    Words: y, indices, updates, wide, tuples, kind of element, indices a tuple,
    elements a slice, reduction; then sizes and steps of the axes.
    """
    kind, depth, count, how = args[5], args[6], args[7], args[8]
    size = 4 if kind == 0 else kind
    for item in range(args[4] if begin == 0 and end > 0 else 0):
        at = slice_offset(args, 9, args[1], args[3], depth, item)
        if at < 0:
            return INDEX_OUT_OF_RANGE
        y, update = args[0] + at, args[2] + item * count * size
        if how == NONE:
            copy_run(y, update, count * size)
        else:
            for j in range(count):
                join(kind, how, y + size * j, update + size * j)
    return OK


@helper
def whole(address, kind, position):
    """A whole number of 8, 4 or 1 bytes; -1 stands for signed bytes."""
    if kind == 8:
        return i64(address)[position]
    if kind == 4:
        return np.int64(i32(address)[position])
    if kind == -1:
        return np.int64(i8(address)[position])
    return np.int64(u8(address)[position])


def one_hot(args, begin, end, worker):
    """One of two values: a row of y is one place of the new axis.

    Words: indices, values, y, kind of index, rows, rows a task, depth, elements a row,
    bytes an element.
    """
    depth, inner, size = args[6], args[7], args[8]
    for row in range(begin * args[5], min(end * args[5], args[4])):
        outer = quotient(row, depth)
        place = row - outer * depth
        for j in range(inner):
            index = whole(args[0], args[3], outer * inner + j)
            hot = index == place or index + depth == place
            source = args[1] + size if hot else args[1]
            move(args[2] + size * (row * inner + j), source, size)
    return OK


EXPORTS = {
    "gather": gather,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "one_hot": one_hot,
}
