"""Convolutions over channels-last images: no copy of the image is made.

Six pixels of the output are a tile.  For each the table of a task holds where the
image pixel below each tap lies, or a row of zeros beyond the border; so strides,
dilations and padding cost nothing in the inner loops.
"""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.epilogue import EPILOGUE_WORDS
from edgewise.kernels.native.memory import load, load_part, store
from edgewise.kernels.native.product import (
    ENTRY,
    HEADS,
    LANES,
    ROWS,
    TABLE,
    finish,
    multiply,
    zeros,
)
from edgewise.kernels.native.vector import fma, splat

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
) = range(EPILOGUE_WORDS, EPILOGUE_WORDS + 23)


@helper
def _clear(zeros_, count):
    for i in range(0, count, LANES):
        store(zeros_ + 4 * i, splat(0.0))


@helper
def _fill_table(args, scratch, pixel, rows, channel, nothing):
    """Where the taps of ``rows`` pixels lie, from ``channel`` on; their heads.

    With ``SPLITS`` > 1 a line is a row of taps, in one piece inside the image and tap
    by tap across a border; else it is a tap.  Past the last pixel the last again.
    """
    width, taps_x, splits = args[OUT_WIDTH], args[KERNEL_X], args[SPLITS]
    lines = args[KERNEL_Y] * (1 if splits > 1 else taps_x)
    heads = i64(scratch + HEADS)
    reach = args[WIDTH] - (taps_x - 1) * args[DILATION_X]
    x, rest = pixel % width, pixel // width
    y, image = rest % args[OUT_HEIGHT], rest // args[OUT_HEIGHT]
    for tile in range(0, rows, ROWS):
        table = i64(scratch + TABLE + ENTRY * (tile // ROWS) * lines * splits)
        left = x * args[STRIDE_X] - args[LEFT]
        right = (x + ROWS - 1) * args[STRIDE_X] - args[LEFT]
        inside = x + ROWS <= width and left >= 0 and right < reach
        together = splits > 1 and inside
        heads[tile // ROWS] = 1 if together else splits
        for i in range(ROWS):
            place = (image, y, x, channel, nothing)
            _fill_column(args, table, i, place, 1 if together else taps_x)
            if tile + i < rows - 1:
                x += 1
                if x == width:
                    x, y = 0, y + 1
                if y == args[OUT_HEIGHT]:
                    y, image = 0, image + 1
    return lines


@helper
def _fill_column(args, table, row, place, taps_x):
    """Addresses for one pixel: all taps, or the first of each row of taps."""
    image, y, x, channel, nothing = place
    height, width, channels = args[HEIGHT], args[WIDTH], args[CHANNELS]
    top = y * args[STRIDE_Y] - args[TOP]
    left = x * args[STRIDE_X] - args[LEFT]
    entry = row
    for r in range(args[KERNEL_Y]):
        v = top + r * args[DILATION_Y]
        start = args[X] + 4 * ((image * height + v) * width * channels + channel)
        for s in range(taps_x):
            u = left + s * args[DILATION_X]
            outside = v < 0 or v >= height or u < 0 or u >= width
            table[entry] = nothing if outside else start + 4 * u * channels
            entry += ROWS


def conv_f32(args, begin, end, worker):
    """A task is a block of pixels times some panels of one group."""
    groups, splits = args[GROUPS], args[SPLITS]
    inputs, outputs = args[CHANNELS] // groups, args[2]
    taps = args[KERNEL_Y] * args[KERNEL_X]
    k, line = taps * inputs, max(splits * inputs, 1)
    count = -(-outputs // LANES)
    chunks = -(-count // args[CHUNK])
    scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    _clear(scratch + args[ZEROS], line)
    filled = -1
    for task in range(begin, end):
        part = task // chunks
        group, row = part % groups, part // groups * args[BLOCK]
        rows = min(args[BLOCK], args[PIXELS] - row)
        if filled != part:
            nothing = scratch + args[ZEROS]
            _fill_table(args, scratch, row, rows, group * inputs, nothing)
            filled = part
        first = task % chunks * args[CHUNK]
        last = min(first + args[CHUNK], count)
        panels = args[WEIGHT] + 64 * k * count * group
        place = (panels, group * outputs)
        multiply(args, 0, scratch, row, rows, (k, line, splits), first, last, place)
    return OK


@helper
def _add_taps(table, taps, weight, step, column):
    """Sums of six pixels over all taps, for the sixteen channels from ``column`` on."""
    sums = zeros()
    a, b, c, d, e, f = sums
    for tap in range(taps):
        row = i64(table + ENTRY * tap)
        w = load(weight + step * tap)
        a = fma(load(row[0] + column), w, a)
        b = fma(load(row[1] + column), w, b)
        c = fma(load(row[2] + column), w, c)
        d = fma(load(row[3] + column), w, d)
        e = fma(load(row[4] + column), w, e)
        f = fma(load(row[5] + column), w, f)
    return a, b, c, d, e, f


@helper
def _add_taps_part(table, taps, weight, step, column, lanes):
    """The same for fewer than sixteen channels."""
    sums = zeros()
    a, b, c, d, e, f = sums
    for tap in range(taps):
        row = i64(table + ENTRY * tap)
        w = load_part(weight + step * tap, lanes)
        a = fma(load_part(row[0] + column, lanes), w, a)
        b = fma(load_part(row[1] + column, lanes), w, b)
        c = fma(load_part(row[2] + column, lanes), w, c)
        d = fma(load_part(row[3] + column, lanes), w, d)
        e = fma(load_part(row[4] + column, lanes), w, e)
        f = fma(load_part(row[5] + column, lanes), w, f)
    return a, b, c, d, e, f


def depthwise_f32(args, begin, end, worker):
    """A task is a block of pixels and ``CHUNK`` vectors of channels."""
    channels, taps = args[CHANNELS], args[KERNEL_Y] * args[KERNEL_X]
    chunk = args[CHUNK] * LANES
    chunks = -(-channels // chunk)
    scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    _clear(scratch + args[ZEROS], channels)
    filled = -1
    for task in range(begin, end):
        row = task // chunks * args[BLOCK]
        rows = min(args[BLOCK], args[PIXELS] - row)
        if filled != row:
            _fill_table(args, scratch, row, rows, 0, scratch + args[ZEROS])
            filled = row
        first = task % chunks * chunk
        for tile in range(0, rows, ROWS):
            table = scratch + TABLE + ENTRY * (tile // ROWS) * taps
            these = min(ROWS, rows - tile)
            for column in range(first, min(first + chunk, channels), LANES):
                lanes = min(channels - column, LANES)
                weight, step = args[WEIGHT] + 4 * column, 4 * channels
                if lanes == LANES:
                    sums = _add_taps(table, taps, weight, step, 4 * column)
                else:
                    sums = _add_taps_part(table, taps, weight, step, 4 * column, lanes)
                finish(args, 0, row + tile, column, lanes, these, sums, scratch)
    return OK


EXPORTS = {"conv_f32": conv_f32, "depthwise_f32": depthwise_f32}
