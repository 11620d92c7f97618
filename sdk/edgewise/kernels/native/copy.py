"""Moving elements: strided copies, blocked transposes, fills, padding by reflection.

Elements are moved as whole numbers of their size, so that no bit of a float changes.
"""

from __future__ import annotations

from edgewise.kernels.catalog.copy import EDGE, NARROW, WRAP
from edgewise.kernels.native.abi import OK, helper, i16, i32, i64, u8
from edgewise.kernels.native.turn import SIDE, make_interleave, turn_block
from edgewise.kernels.native.walk import (
    copy_run,
    end_item,
    first_item,
    move,
    offset_2,
    quotient,
    row_span,
)


def copy(pointer, size):
    """A kernel that copies rows between strides.  Words: x, y, a walk over x and y."""

    def kernel(args, begin, end, worker):
        step_x, step_y = args[8], args[9]
        for item in range(first_item(args, 2, begin), end_item(args, 2, end)):
            i, start, count = row_span(args, 2, item)
            at_x, at_y = offset_2(args, 2, i)
            x = args[0] + size * (at_x + start * step_x)
            y = args[1] + size * (at_y + start * step_y)
            if step_x == 1 and step_y == 1:
                copy_run(y, x, size * count)
            elif step_x == 0 and step_y == 1:
                value, out = pointer(x)[0], pointer(y)
                for j in range(count):
                    out[j] = value
            else:
                source, out = pointer(x), pointer(y)
                for j in range(count):
                    out[j * step_y] = source[j * step_x]
        return OK

    return kernel


def transpose(pointer, size):
    """A kernel for matrices, strips of sixteen rows of y at a time.

    Words: x, y, rows of y, columns of y, then as a walk: items, items a task, strips
    a matrix, column chunks a strip, columns a chunk, rank, stride of x along columns,
    of y along rows, sizes of the outer axes, their strides in x and in y.  x is
    contiguous along the rows of y, and y along its columns.
    """
    turn = turn_blocks if size == TURNED else turn_none

    def kernel(args, begin, end, worker):
        rows, columns, step_x, step_y = args[2], args[3], args[10], args[11]
        strips, chunks, chunk = args[6], args[7], args[8]
        for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
            strip = quotient(item, chunks)
            j = (item - strip * chunks) * chunk
            matrix = quotient(strip, strips)
            i = (strip - matrix * strips) * 16
            at_x, at_y = offset_2(args, 4, matrix)
            at_x = args[0] + size * (at_x + i + j * step_x)
            at_y = args[1] + size * (at_y + i * step_y + j)
            x, y = pointer(at_x), pointer(at_y)
            height, width = min(16, rows - i), min(chunk, columns - j)
            if height == 16:
                for k in range(turn(at_x, step_x, at_y, step_y, width), width):
                    for r in range(16):
                        y[r * step_y + k] = x[k * step_x + r]
            else:
                for k in range(width):
                    for r in range(height):
                        y[r * step_y + k] = x[k * step_x + r]
        return OK

    return kernel


TURNED = 4  # bytes of the elements that are turned in registers


@helper
def turn_none(x, step_x, y, step_y, width):
    """Columns of a strip that need no further work: none."""
    return 0


@helper
def turn_blocks(x, step_x, y, step_y, width):
    """Turn what there is of whole blocks of a strip; the columns that are done."""
    whole = width & -SIDE
    for k in range(0, whole, SIDE):
        from_, to = x + 4 * k * step_x, y + 4 * k
        turn_block(from_, 4 * step_x, to, 4 * step_y)
        turn_block(from_ + 4 * SIDE, 4 * step_x, to + 4 * SIDE * step_y, 4 * step_y)
    return whole


def interleave(count):
    """A kernel that writes ``count`` rows of x element by element: a narrow transpose.

    Words: x, y, stride from row to row, a walk over x and y, along a row of x.
    """
    sixteen, eight = make_interleave(count, 16), make_interleave(count, 8)

    def kernel(args, begin, end, worker):
        step = args[2]
        for item in range(first_item(args, 3, begin), end_item(args, 3, end)):
            i, start, size = row_span(args, 3, item)
            at_x, at_y = offset_2(args, 3, i)
            x = args[0] + 4 * (at_x + start)
            y = args[1] + 4 * (at_y + count * start)
            whole = size & -16
            for j in range(0, whole, 16):
                sixteen(x + 4 * j, 4 * step, y + 4 * count * j)
            if size - whole >= 8:
                eight(x + 4 * whole, 4 * step, y + 4 * count * whole)
                whole += 8
            source, out = i32(x), i32(y)
            for j in range(whole, size):
                for k in range(count):
                    out[count * j + k] = source[k * step + j]
        return OK

    return kernel


def fill(pointer):
    """A kernel that writes one value.  Words: y, size, elements a task, value."""

    def kernel(args, begin, end, worker):
        y, value = pointer(args[0]), args[3]
        for i in range(begin * args[2], min(end * args[2], args[1])):
            y[i] = value
        return OK

    return kernel


@helper
def inside(mode, index, size):
    """Where padding at ``index`` of an axis of ``size`` elements takes its element."""
    if 0 <= index < size:
        return index
    if mode == EDGE:
        return 0 if index < 0 else size - 1
    if mode == WRAP:
        return index % size
    period = max(2 * (size - 1), 1)
    folded = index % period
    return min(folded, period - folded) if size > 1 else 0


def pad(args, begin, end, worker):
    """Padding with elements of x.

    Words: x, y, mode, bytes an element, rows of y, rows a task, rank; then by axis the
    sizes of y, sizes of x, elements before, strides of x.
    """
    mode, size, rank = args[2], args[3], args[6]
    dims, kept, before, steps = 7, 7 + rank, 7 + 2 * rank, 7 + 3 * rank
    inner = args[dims + rank - 1]
    width, left = args[kept + rank - 1], args[before + rank - 1]
    step = args[steps + rank - 1]
    for i in range(begin * args[5], min(end * args[5], args[4])):
        row, x = i, args[0]
        for axis in range(rank - 2, -1, -1):
            rest = quotient(row, args[dims + axis])
            index = row - rest * args[dims + axis] - args[before + axis]
            index = inside(mode, index, args[kept + axis])
            x += size * index * args[steps + axis]
            row = rest
        y = args[1] + size * i * inner
        for j in range(inner):
            move(y + size * j, x + size * step * inside(mode, j - left, width), size)
    return OK


def triangle(args, begin, end, worker):
    """Zeros above or below a diagonal.

    Words: x, y, rows in all, rows a task, rows a matrix, columns, bytes an element,
    whether the upper part stays, diagonal.
    """
    rows, columns, size = args[4], args[5], args[6]
    for i in range(begin * args[3], min(end * args[3], args[2])):
        x, y = args[0] + size * i * columns, args[1] + size * i * columns
        edge = i - quotient(i, rows) * rows + args[8]
        first = min(max(edge, 0), columns) if args[7] != 0 else 0
        last = columns if args[7] != 0 else min(max(edge + 1, 0), columns)
        if x != y:
            copy_run(y + size * first, x + size * first, size * (last - first))
        out = u8(y)
        for j in range(size * first):
            out[j] = 0
        for j in range(size * last, size * columns):
            out[j] = 0
    return OK


def arange(args, begin, end, worker):
    """Words: y, size, elements a task, start, step."""
    y = i64(args[0])
    for i in range(begin * args[2], min(end * args[2], args[1])):
        y[i] = args[3] + i * args[4]
    return OK


def constants(args, begin, end, worker):
    """Words: y, size, then the numbers to write."""
    y = i64(args[0])
    if begin == 0:
        for i in range(args[1]):
            y[i] = args[2 + i]
    return OK


EXPORTS = {
    "copy_1": copy(u8, 1),
    "copy_2": copy(i16, 2),
    "copy_4": copy(i32, 4),
    "copy_8": copy(i64, 8),
    "transpose_1": transpose(u8, 1),
    "transpose_2": transpose(i16, 2),
    "transpose_4": transpose(i32, 4),
    "transpose_8": transpose(i64, 8),
    "fill_1": fill(u8),
    "fill_2": fill(i16),
    "fill_4": fill(i32),
    "fill_8": fill(i64),
    **{f"interleave_{count}": interleave(count) for count in NARROW},
    "pad": pad,
    "triangle": triangle,
    "arange_i64": arange,
    "constants_i64": constants,
}
