"""Convolutions over channels-last images: no copy of the image is made.

Six pixels of the output, or five, are a tile.  For each pixel the table of a task holds
where the image pixel below each tap lies, or what stands for it beyond the border; so
strides, dilations and padding cost nothing in the inner loops.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.epilogue import EPILOGUE_WORDS
from edgewise.kernels.native.memory import store_i32
from edgewise.kernels.native.product import (
    AS_THEY_ARE,
    FEWEST,
    HEADS,
    LANES,
    ROWS,
    TABLE,
    Panels,
    evenly,
    multiply,
)
from edgewise.kernels.native.vector import splat_i32

# Words of a convolution after its epilogue: how windows lie, then work and its parts.
(
    X,
    HEIGHT,
    WIDTH,
    CHANNELS,
    OUT_HEIGHT,
    OUT_WIDTH,
    KERNEL_Y,
    KERNEL_X,
    STRIDE_Y,
    STRIDE_X,
    TOP,
    LEFT,
    DILATION_Y,
    DILATION_X,
    GROUPS,
    WEIGHT,
    SPLITS,
    PIXELS,
    BLOCK,
    CHUNK,
    SCRATCH,
    SCRATCH_BYTES,
    ZEROS,
    OUTSIDE,
) = range(EPILOGUE_WORDS, EPILOGUE_WORDS + 24)


@helper
def _fill(target, count, value):
    """What lies beyond the border of an image."""
    for i in range(0, count, LANES):
        store_i32(target + 4 * i, splat_i32(np.int32(value)))


@helper
def _fill_table(args, scratch, pixel, rows, channel, nothing, most):
    """Where the taps of ``rows`` pixels lie, from ``channel`` on; their heads.

    With ``SPLITS`` > 1 a line is a row of taps, in one piece inside the image and tap
    by tap across a border; else it is a tap.  Past the last pixel the last again.
    """
    taps_x, splits = args[KERNEL_X], args[SPLITS]
    size = ROWS * args[KERNEL_Y] * taps_x
    heads = i64(scratch + HEADS)
    step = 4 * args[STRIDE_X] * args[CHANNELS]
    tiles, whole, longer = evenly(rows, most)
    before, start, these = -1, 0, 0
    for tile in range(tiles):
        table = scratch + TABLE + 8 * tile * size
        start, moved = start + these, these
        these = whole + 1 if tile < longer else whole
        place = place_of(args, pixel + start)
        image, y, x = place
        line = image * args[OUT_HEIGHT] + y
        read = max(these, FEWEST)
        inside = start + read <= rows and _is_inside(args, x, y, read)
        together = splits > 1 and inside
        heads[tile] = 1 if together else splits
        if inside and line == before:
            _move_on(table - 8 * size, table, size, step * moved)
        else:
            seen = 1 if together else taps_x
            for i in range(ROWS):
                _fill_column(args, i64(table), i, place, seen, channel, nothing)
                if start + i < rows - 1:
                    place = _next_place(args, place)
        before = line if inside else -1


@helper
def place_of(args, pixel):
    """Image, row and column of a pixel of the output."""
    row = pixel // args[OUT_WIDTH]
    return row // args[OUT_HEIGHT], row % args[OUT_HEIGHT], pixel % args[OUT_WIDTH]


@helper
def _next_place(args, place):
    """Where the pixel after one lies, without a division: borders have many."""
    image, y, x = place
    if x + 1 < args[OUT_WIDTH]:
        return image, y, x + 1
    if y + 1 < args[OUT_HEIGHT]:
        return image, y + 1, 0
    return image + 1, 0, 0


@helper
def _is_inside(args, x, y, count):
    """Whether all taps of pixels from (x, y) on lie in the image, in one row."""
    left = x * args[STRIDE_X] - args[LEFT]
    right = (x + count - 1) * args[STRIDE_X] - args[LEFT]
    right += (args[KERNEL_X] - 1) * args[DILATION_X]
    top = y * args[STRIDE_Y] - args[TOP]
    bottom = top + (args[KERNEL_Y] - 1) * args[DILATION_Y]
    across = left >= 0 and right < args[WIDTH] and x + count <= args[OUT_WIDTH]
    return across and top >= 0 and bottom < args[HEIGHT]


@helper
def _move_on(source, target, size, step):
    """The addresses of the tile before, moved along the image."""
    x, y = i64(source), i64(target)
    for i in range(size):
        y[i] = x[i] + step


@helper
def _fill_column(args, table, row, place, taps_x, channel, nothing):
    """Addresses for one pixel: all taps, or the first of each row of taps."""
    image, y, x = place
    height, width, taps_y = args[HEIGHT], args[WIDTH], args[KERNEL_Y]
    down, along = args[DILATION_Y], args[DILATION_X]
    row_bytes = 4 * width * args[CHANNELS]
    step = 4 * along * args[CHANNELS]
    v = y * args[STRIDE_Y] - args[TOP]
    left = x * args[STRIDE_X] - args[LEFT]
    start = args[X] + 4 * (left * args[CHANNELS] + channel)
    start += image * height * row_bytes
    entry = row
    for _ in range(taps_y):
        above, u, at = v < 0 or v >= height, left, start + v * row_bytes
        for _ in range(taps_x):
            outside = above or u < 0 or u >= width
            table[entry] = nothing if outside else at
            u, at, entry = u + along, at + step, entry + ROWS
        v += down


def make_conv(multiply, most, stored: Panels = AS_THEY_ARE):
    """A convolution; a task is a block of pixels times some panels of one group.

    Channels are words of four bytes; ``OUTSIDE`` is one of those beyond the border.
    Tiles of ``multiply`` have up to ``most`` rows.
    """
    place_of = stored.place

    def conv(args, begin, end, worker):
        groups, splits = args[GROUPS], args[SPLITS]
        inputs, outputs = args[CHANNELS] // groups, args[2]
        taps = args[KERNEL_Y] * args[KERNEL_X]
        k, line = taps * inputs, max(splits * inputs, 1)
        count = -(-outputs // LANES)
        chunks = -(-count // args[CHUNK])
        scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
        _fill(scratch + args[ZEROS], line, args[OUTSIDE])
        filled = -1
        for task in range(begin, end):
            part = task // chunks
            group, row = part % groups, part // groups * args[BLOCK]
            rows = min(args[BLOCK], args[PIXELS] - row)
            fresh = filled != part
            if fresh:
                nothing = scratch + args[ZEROS]
                channel = group * inputs
                _fill_table(args, scratch, row, rows, channel, nothing, most)
                filled = part
            first = task % chunks * args[CHUNK]
            last = min(first + args[CHUNK], count)
            panels = place_of(args, 0, args[WEIGHT], k, count * group)
            place = (panels, group * outputs)
            shape = (k, line, splits)
            multiply(args, 0, scratch, row, rows, shape, first, last, place, fresh)
        return OK

    return conv


EXPORTS = {"conv_f32": make_conv(multiply, ROWS)}
