"""``linear`` and ``matmul``: rows of matrices times panels."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.epilogue import bounds, factors, store_buffer
from edgewise.kernels.native.memory import store
from edgewise.kernels.native.offsets import offset_of
from edgewise.kernels.native.product import (
    ENTRY,
    HEADS,
    LANES,
    ROWS,
    TABLE,
    evenly,
    multiply,
)
from edgewise.kernels.native.tile import make_tile, make_zeros

WIDE = 4
_wide_tile = make_tile(1, WIDE)
_tile = make_tile(1, 1)
_wide_zeros, _zero = make_zeros(WIDE), make_zeros(1)


@helper
def fill_table(scratch, a, stride, rows, lines, line):
    """Addresses of the lines of ``rows`` rows; past the last row, the last again."""
    heads = i64(scratch + HEADS)
    tiles, whole, longer = evenly(rows)
    for tile in range(tiles):
        heads[tile] = 1
        start = tile * whole + min(tile, longer)
        for number in range(lines):
            entry = i64(scratch + TABLE + ENTRY * (tile * lines + number))
            for i in range(ROWS):
                row = min(start + i, rows - 1)
                entry[i] = a + 4 * (row * stride + number * line)


@helper
def _one_row(args, at, scratch, row, x, k, first, last, panels):
    """One row times panels, several at a time: so many sums hide the latency."""
    low, high = bounds(args, at)
    p = first
    while p < last:
        count = WIDE if p + WIDE <= last else 1
        panel = panels + 64 * k * p
        if count == WIDE:
            sums = _wide_tile(k, (x,), panel, 64 * k, _wide_zeros())
            store(scratch, sums[0])
            store(scratch + 64, sums[1])
            store(scratch + 128, sums[2])
            store(scratch + 192, sums[3])
        else:
            store(scratch, _tile(k, (x,), panel, 0, _zero())[0])
        for i in range(count):
            column = LANES * (p + i)
            lanes = min(args[at + 2] - column, LANES)
            scale, shift = factors(args, at, column, lanes)
            ending, buffer = (scale, shift, low, high), scratch + 64 * i
            store_buffer(args, at, row, column, 1, lanes, buffer, ending)
        p += count


def product_f32(args, begin, end, worker):
    """``epilogue(a w)`` for each matrix of a batch.

    A task is a block of rows of one matrix times some panels.  Words: a, elements from
    row to row of it, panels, rows, K, length of a line, panels a task, rows a task,
    scratch, its bytes for each worker; the epilogue; the batch as ``offset_of`` reads
    it, for a and for the panels.
    """
    stride, rows, k, line = args[1], args[3], args[4], args[5]
    chunk, block, at, batch = args[6], args[7], 10, 20
    scratch = args[8] + args[9] * worker
    count = -(-args[at + 2] // LANES)
    chunks, blocks = -(-count // chunk), -(-rows // block)
    lines = max(-(-k // line), 1)
    filled = -1
    for task in range(begin, end):
        part, matrix = task // chunks, task // chunks // blocks
        row = part % blocks * block
        height = min(block, rows - row)
        first = task % chunks * chunk
        last = min(first + chunk, count)
        a = args[0] + 4 * (offset_of(args, batch, 0, matrix) + row * stride)
        panels = args[2] + 4 * offset_of(args, batch, 1, matrix)
        target = matrix * rows + row
        if height == 1:
            _one_row(args, at, scratch, target, a, k, first, last, panels)
            continue
        fresh = filled != part
        if fresh:
            fill_table(scratch, a, stride, height, lines, line)
            filled = part
        shape = (k, line, 1)
        group = (panels, 0)
        multiply(args, at, scratch, target, height, shape, first, last, group, fresh)
    return OK


EXPORTS = {"product_f32": product_f32}
