"""Inverted bottlenecks: expand, filter, project, a few rows of the image at a time.

A task is a block of rows of the output.  The expanded rows under a band of it lie in a
ring: row ``v`` in place ``v`` modulo its size, so that each is computed once and those
the next band needs as well stay where they are.  The filtered rows of a band lie side
by side; they are projected before the next band begins.  Both stay in the caches of
the core, and nothing but the result goes out to memory.

A worker has its own copy of the words, in which the addresses are those of its memory.
"""

from __future__ import annotations

from edgewise.kernels.native import depthwise
from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.depthwise import (
    APART,
    BLOCK,
    CHANNELS,
    CHUNK,
    DILATION_Y,
    HEIGHT,
    KERNEL_Y,
    OUT_HEIGHT,
    OUT_WIDTH,
    SCRATCH,
    SCRATCH_BYTES,
    STRIDE_Y,
    TOP,
    WIDTH,
    ZEROS,
    X,
    fill_row,
    kind_of,
    one_row,
    prepare,
)
from edgewise.kernels.native.epilogue import EPILOGUE_WORDS, bounds
from edgewise.kernels.native.matmul import fill_table
from edgewise.kernels.native.product import BLOCK_ROWS, LANES, ROWS, multiply

# After the words of the depthwise convolution: the image, the ends of the products, for
# each its panels, K and length of a line; then how work is cut and memory.
EXPAND = SCRATCH_BYTES + 1
PROJECT = EXPAND + EPILOGUE_WORDS
(
    IMAGE,
    PITCH,
    EXPAND_PANELS,
    EXPAND_K,
    EXPAND_LINE,
    PROJECT_PANELS,
    PROJECT_K,
    PROJECT_LINE,
    BAND,
    RING,
    AT_FILTERS,
    AT_WORDS,
    AT_BAND,
    AT_RING,
    WORDS,
) = range(PROJECT + EPILOGUE_WORDS, PROJECT + EPILOGUE_WORDS + 15)


@helper
def _own(args, scratch):
    """The words, with a worker's own memory in between the three."""
    words = i64(scratch + args[AT_WORDS])
    for i in range(WORDS):
        words[i] = args[i]
    words[0] = scratch + args[AT_BAND]
    if args[RING] > 0:
        words[X] = words[EXPAND] = scratch + args[AT_RING]
    return words


@helper
def _product(args, at, scratch, source, place, rows, weight):
    """Rows, ``source`` = (first, pitch), by panels, into rows from ``place`` on."""
    panels, k, line = weight
    start, pitch = source
    lines, count = max(-(-k // line), 1), -(-args[at + 2] // LANES)
    pieces = -(-rows // BLOCK_ROWS)
    most = -(-rows // pieces)
    for row in range(0, rows, most):
        these = min(most, rows - row)
        first = start + 4 * row * pitch
        fill_table(scratch, first, pitch, these, lines, line, ROWS)
        shape, group = (k, line, 1), (panels, 0)
        multiply(
            args, at, scratch, place + row, these, shape, 0, count, group, False
        )  # fmt: skip


@helper
def _expand(args, scratch, image, first, last):
    """Rows ``[first, last)`` of an image, each into its place of the ring."""
    width, pitch = args[WIDTH], args[PITCH]
    weight = (args[EXPAND_PANELS], args[EXPAND_K], args[EXPAND_LINE])
    for v in range(first, last):
        source = args[IMAGE] + 4 * (image * args[HEIGHT] + v) * width * pitch
        place = v % args[RING] * width
        _product(args, EXPAND, scratch, (source, pitch), place, width, weight)


@helper
def _fill_table(args, table, line, nothing):
    """As a depthwise convolution does it, on the ring where there is one."""
    if args[RING] == 0:
        depthwise.fill_table(args, table, line, nothing)
        return
    top = line % args[OUT_HEIGHT] * args[STRIDE_Y] - args[TOP]
    step = 4 * args[APART] * args[WIDTH]
    for r in range(args[KERNEL_Y]):
        entry = i64(table + 8 * r * args[depthwise.COLUMNS])
        v = top + r * args[DILATION_Y]
        outside = v < 0 or v >= args[HEIGHT]
        start = args[X] + v % args[RING] * step
        fill_row(args, entry, start, outside, nothing)


@helper
def _under(args, row, rows):
    """Rows ``[first, last)`` of the image that windows over rows of the output see."""
    first = row * args[STRIDE_Y] - args[TOP]
    last = first + (rows - 1) * args[STRIDE_Y]
    last += (args[KERNEL_Y] - 1) * args[DILATION_Y] + 1
    return max(first, 0), min(last, args[HEIGHT])


def bottleneck_f32(args, begin, end, worker):
    """A task is a block of rows of the output of one image."""
    scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    words, filters = _own(args, scratch), scratch + args[AT_FILTERS]
    height, width, block = words[OUT_HEIGHT], words[OUT_WIDTH], words[BLOCK]
    blocks = -(-height // block)
    limits, kind = bounds(words, 0), kind_of(words)
    zeros, (scale, shift) = prepare(words, filters, 0, words[CHANNELS])
    task = (0, words[CHANNELS], scale, shift)
    table = filters + ZEROS + 12 * words[CHUNK]
    weight = (words[PROJECT_PANELS], words[PROJECT_K], words[PROJECT_LINE])
    source, done = (words[0], words[CHANNELS]), 0
    for number in range(begin, end):
        image, first = number // blocks, number % blocks * block
        if first == 0 or number == begin:
            done = 0
        stop = min(first + block, height)
        for row in range(first, stop, words[BAND]):
            rows = min(words[BAND], stop - row)
            if words[RING] > 0:
                low, high = _under(words, row, rows)
                _expand(words, scratch, image, max(low, done), high)
                done = max(high, done)
            for line in range(rows):
                _fill_table(words, table, image * height + row + line, zeros)
                one_row(kind, words, task, line, table, filters, limits)
            place = (image * height + row) * width
            _product(words, PROJECT, scratch, source, place, rows * width, weight)
    return OK


EXPORTS = {"bottleneck_f32": bottleneck_f32}
