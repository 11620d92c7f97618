"""``linear`` and ``matmul``: rows of matrices times panels."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.epilogue import EPILOGUE_WORDS
from edgewise.kernels.native.memory import store, store_i32
from edgewise.kernels.native.offsets import offset_of
from edgewise.kernels.native.product import (
    ENTRY,
    HEADS,
    LANES,
    ROWS,
    STORED,
    TABLE,
    Ending,
    evenly,
    make_multiply,
)
from edgewise.kernels.native.tile import REALS, Sums, make_tile
from edgewise.kernels.native.vector import f32x16

WIDE = 4
AT = 10  # where the words of the epilogue begin


@helper
def fill_table(scratch, a, stride, rows, lines, line, most):
    """Addresses of the lines of ``rows`` rows; past the last row, the last again."""
    heads = i64(scratch + HEADS)
    tiles, whole, longer = evenly(rows, most)
    for tile in range(tiles):
        heads[tile] = 1
        start = tile * whole + min(tile, longer)
        for number in range(lines):
            entry = i64(scratch + TABLE + ENTRY * (tile * lines + number))
            for i in range(ROWS):
                row = min(start + i, rows - 1)
                entry[i] = a + 4 * (row * stride + number * line)


def _make_one_row(kind: Sums, ending: Ending):
    """One row times panels, several at a time: so many sums hide the latency."""
    wide_tile, tile = make_tile(1, WIDE, kind), make_tile(1, 1, kind)
    factors, start, store_buffer = ending.factors, ending.start, ending.store_buffer
    write = store if kind.vector is f32x16 else store_i32

    @helper
    def first_of(args, at, column):
        lanes = min(args[at + 2] - column, LANES)
        return start(factors(args, at, column, lanes))

    @helper
    def one_row(args, at, scratch, row, x, k, first, last, panels):
        p = first
        while p < last:
            count = WIDE if p + WIDE <= last else 1
            panel = panels + 64 * k * p
            if count == WIDE:
                column = LANES * p
                starts = (
                    first_of(args, at, column),
                    first_of(args, at, column + LANES),
                    first_of(args, at, column + 2 * LANES),
                    first_of(args, at, column + 3 * LANES),
                )
                sums = wide_tile(k, (x,), panel, 64 * k, starts)
                write(scratch, sums[0])
                write(scratch + 64, sums[1])
                write(scratch + 128, sums[2])
                write(scratch + 192, sums[3])
            else:
                one = (first_of(args, at, LANES * p),)
                write(scratch, tile(k, (x,), panel, 0, one)[0])
            for i in range(count):
                column = LANES * (p + i)
                lanes = min(args[at + 2] - column, LANES)
                end, buffer = factors(args, at, column, lanes), scratch + 64 * i
                store_buffer(args, at, row, column, 1, lanes, buffer, end)
            p += count

    return one_row


def make_product(kind: Sums = REALS, ending: Ending = STORED):
    """The product over panels that lie as they are read."""
    one_row, multiply = _make_one_row(kind, ending), make_multiply(kind, ending)
    return product_of(one_row, multiply, kind.rows)


def product_of(one_row, multiply, most):
    """``epilogue(a w)`` for each matrix of a batch.

    A task is a block of rows of one matrix times some panels.  Words: a, elements from
    row to row of it, panels, rows, K, length of a line, panels a task, rows a task,
    scratch, its bytes for each worker; the epilogue; the batch as ``offset_of`` reads
    it, for a and for the panels.  Tiles of ``multiply`` have up to ``most`` rows.
    """

    def product(args, begin, end, worker):
        stride, rows, k, line = args[1], args[3], args[4], args[5]
        chunk, block, at, batch = args[6], args[7], AT, AT + EPILOGUE_WORDS
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
                one_row(args, at, scratch, target, a, k, first, last, panels)
                continue
            fresh = filled != part
            if fresh:
                fill_table(scratch, a, stride, height, lines, line, most)
                filled = part
            shape = (k, line, 1)
            group = (panels, 0)
            multiply(
                args, at, scratch, target, height, shape, first, last, group, fresh
            )
        return OK

    return product


EXPORTS = {"product_f32": make_product()}
