"""Convolutions over few channels: what each window sees is gathered into a row first.

With one or three channels a row of taps is a handful of numbers, and a product that
goes from row of taps to row of taps spends its time on addresses.  Words as of
``conv_f32``; the rows lie where that has its zeros, ``SPLITS`` elements apart.  Bytes
are gathered as words of four.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.conv import (
    BLOCK,
    CHANNELS,
    CHUNK,
    DILATION_Y,
    HEIGHT,
    KERNEL_X,
    KERNEL_Y,
    LEFT,
    OUTSIDE,
    PIXELS,
    SCRATCH,
    SCRATCH_BYTES,
    SPLITS,
    STRIDE_X,
    STRIDE_Y,
    TOP,
    WEIGHT,
    WIDTH,
    ZEROS,
    X,
    place_of,
)
from edgewise.kernels.native.memory import load_part_i32, store_i32
from edgewise.kernels.native.product import (
    ENTRY,
    HEADS,
    LANES,
    ROWS,
    TABLE,
    evenly,
    multiply,
)
from edgewise.kernels.native.vector import splat_i32


@helper
def _nothing(args, target, count):
    """What lies outside, and more behind it: what follows is written later."""
    for i in range(0, count, LANES):
        store_i32(target + 4 * i, splat_i32(np.int32(args[OUTSIDE])))


@helper
def _copy(source, target, count):
    """Numbers, and some beyond them: what follows is written later."""
    for i in range(0, count, LANES):
        words = load_part_i32(source + 4 * i, min(count - i, LANES))
        store_i32(target + 4 * i, words)


@helper
def _gather(args, target, pixel):
    """The numbers of one window, in the order of its weights."""
    image, y, x = place_of(args, pixel)
    height, width, channels = args[HEIGHT], args[WIDTH], args[CHANNELS]
    top, left = y * args[STRIDE_Y] - args[TOP], x * args[STRIDE_X] - args[LEFT]
    line = args[KERNEL_X] * channels
    first = min(max(-left, 0), args[KERNEL_X])
    end = max(min(args[KERNEL_X], width - left), first)
    for r in range(args[KERNEL_Y]):
        v = top + r * args[DILATION_Y]
        if v < 0 or v >= height:
            _nothing(args, target, line)
        else:
            start = ((image * height + v) * width + left + first) * channels
            _nothing(args, target, first * channels)
            here = target + 4 * first * channels
            _copy(args[X] + 4 * start, here, (end - first) * channels)
            rest = (args[KERNEL_X] - end) * channels
            _nothing(args, target + 4 * end * channels, rest)
        target += 4 * line


@helper
def _fill(args, scratch, pixel, rows, most):
    """Rows of a block of pixels, and the table of where they lie."""
    base, pitch = scratch + args[ZEROS], 4 * args[SPLITS]
    for i in range(rows):
        _gather(args, base + pitch * i, pixel + i)
    heads = i64(scratch + HEADS)
    tiles, whole, longer = evenly(rows, most)
    start = 0
    for tile in range(tiles):
        heads[tile] = 1
        entry = i64(scratch + TABLE + ENTRY * tile)
        for i in range(ROWS):
            entry[i] = base + pitch * min(start + i, rows - 1)
        start += whole + 1 if tile < longer else whole


def make_stem(multiply, most):
    """A task is a block of pixels times some panels."""

    def stem(args, begin, end, worker):
        k, outputs = args[KERNEL_Y] * args[KERNEL_X] * args[CHANNELS], args[2]
        count = -(-outputs // LANES)
        chunks = -(-count // args[CHUNK])
        scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
        filled = -1
        for task in range(begin, end):
            part = task // chunks
            row = part * args[BLOCK]
            rows = min(args[BLOCK], args[PIXELS] - row)
            fresh = filled != part
            if fresh:
                _fill(args, scratch, row, rows, most)
                filled = part
            first = task % chunks * args[CHUNK]
            last = min(first + args[CHUNK], count)
            place, shape = (args[WEIGHT], 0), (k, k, 1)
            multiply(args, 0, scratch, row, rows, shape, first, last, place, fresh)
        return OK

    return stem


EXPORTS = {"stem_f32": make_stem(multiply, ROWS)}
