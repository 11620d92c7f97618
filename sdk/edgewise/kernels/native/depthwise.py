"""Depthwise convolutions over channels-last images, a row of the output at a time."""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, helper, i64
from edgewise.kernels.native.epilogue import (
    CLIP,
    EPILOGUE_WORDS,
    bounds,
    factors,
    store_buffer,
)
from edgewise.kernels.native.memory import load, load_part, store, store_part
from edgewise.kernels.native.vector import LANES, at_least, at_most, fma, splat
from edgewise.kernels.native.window import HALF, PIXELS, make_any_strip, make_strip

# Words after the epilogue: how windows lie, elements from pixel to pixel of the image,
# then work and its parts.
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
    APART,
    WEIGHT,
    ROWS,
    BLOCK,
    CHUNK,
    COLUMNS,
    SCRATCH,
    SCRATCH_BYTES,
) = range(EPILOGUE_WORDS, EPILOGUE_WORDS + 22)
# Scratch of a worker: a strip, zeros, scale and shift of a task's channels, the table.
ZEROS = 64 * PIXELS


def make_fill_row(size: int):
    """Addresses of the columns under a row of the kernel, of the image row ``start``.

    That row may lie ``outside`` the image.  ``size``: bytes of a channel.
    """

    @helper
    def fill_row(args, entry, start, outside, nothing):
        left, columns, step = args[LEFT], args[COLUMNS], size * args[APART]
        begin, end = min(left, columns), min(left + args[WIDTH], columns)
        if outside:
            begin, end = columns, columns
        for u in range(begin):
            entry[u] = nothing
        for u in range(begin, end):
            entry[u] = start + (u - left) * step
        for u in range(end, columns):
            entry[u] = nothing

    return fill_row


def make_fill_table(size: int):
    """Where the columns under a row of the output lie, for each row of the kernel."""
    fill = make_fill_row(size)

    @helper
    def fill_table(args, table, line, nothing):
        height, step = args[HEIGHT], size * args[APART]
        image = line // args[OUT_HEIGHT]
        top = line % args[OUT_HEIGHT] * args[STRIDE_Y] - args[TOP]
        for r in range(args[KERNEL_Y]):
            entry, v = i64(table + 8 * r * args[COLUMNS]), top + r * args[DILATION_Y]
            start = args[X] + (image * height + v) * args[WIDTH] * step
            fill(args, entry, start, v < 0 or v >= height, nothing)

    return fill_table


fill_row, fill_table = make_fill_row(4), make_fill_table(4)


@helper
def _add_part(args, table, offset, lanes, out, ending):
    """A strip of fewer than eight channels, ``offset`` bytes from the first one."""
    taps, step = args[KERNEL_X], 4 * args[CHANNELS]
    scale, shift, low, high = ending
    for pixel in range(PIXELS):
        total = splat(0.0)
        for r in range(args[KERNEL_Y]):
            entry = i64(table + 8 * (r * args[COLUMNS] + pixel * args[STRIDE_X]))
            for s in range(taps):
                x = load_part(entry[s * args[DILATION_X]] + offset, lanes)
                w = load_part(args[WEIGHT] + offset + step * (r * taps + s), lanes)
                total = fma(x, w, total)
        total = fma(total, scale, shift)
        total = at_most(at_least(total, low), high)
        store_part(out + 64 * pixel, total, lanes)


def _make_run(strip, unit):
    """``run(args, table, begin, end, target, factors, limits)``: whole units only.

    Channels from ``begin`` to ``end`` of a strip.  ``target`` is where its first pixel
    goes and the bytes from pixel to pixel, ``factors`` where scale and shift lie.
    """
    ahead = 4 * unit

    @helper
    def run(args, table, begin, end, target, factors_, limits):
        rows, pitch, step = args[KERNEL_Y], 8 * args[COLUMNS], 4 * args[CHANNELS]
        shape = (args[KERNEL_X], 8 * args[STRIDE_X], 8 * args[DILATION_X])
        weight, out, scale, shift = args[WEIGHT], target[0], *factors_
        for at in range(4 * begin, 4 * end, ahead):
            ending = (out, target[1], scale, shift)
            strip(rows, table, pitch, weight + at, step, at, ending, limits, shape)
            out, scale, shift = out + ahead, scale + ahead, shift + ahead

    return run


_run_3, _run_5 = _make_run(make_strip(3, 1), HALF), _make_run(make_strip(5, 1), HALF)
_run_3_2, _run_5_2 = (
    _make_run(make_strip(3, 2), HALF),
    _make_run(make_strip(5, 2), HALF),
)
_run_7 = _make_run(make_strip(7, 1), HALF)
_run_any = _make_run(make_any_strip(), LANES)
ANY, _3, _3_2, _5, _5_2, _7 = range(6)


@helper
def kind_of(args):
    """Which of the runs does the window at hand."""
    taps, stride = args[KERNEL_X], args[STRIDE_X]
    if args[DILATION_X] != 1 or stride > 2 or taps % 2 == 0 or taps > 7 or taps == 1:
        return ANY
    if taps == 7:
        return _7 if stride == 1 else ANY
    return taps - 3 + stride


@helper
def _run(kind, args, table, begin, end, target, factors_, limits):
    if kind == _3:
        _run_3(args, table, begin, end, target, factors_, limits)
    elif kind == _3_2:
        _run_3_2(args, table, begin, end, target, factors_, limits)
    elif kind == _5:
        _run_5(args, table, begin, end, target, factors_, limits)
    elif kind == _5_2:
        _run_5_2(args, table, begin, end, target, factors_, limits)
    elif kind == _7:
        _run_7(args, table, begin, end, target, factors_, limits)
    else:
        _run_any(args, table, begin, end, target, factors_, limits)


@helper
def _by_vectors(kind, args, table, place, pixels, span, scratch, factors_, limits):
    """Channels ``span`` of a strip that cannot be stored at once."""
    column, last = span
    scale, shift = factors_
    ending = (splat(1.0), splat(0.0), limits[0], limits[1])
    # Bounds hold the sum with its residual, not the sum.
    low, high = splat(-np.inf), splat(np.inf)
    unit = LANES if kind == ANY else HALF
    while column < last:
        lanes = min(last - column, LANES)
        whole = lanes // unit * unit
        part = (scale, shift)
        _run(
            kind, args, table, column, column + whole, (scratch, 64), part, (low, high)
        )
        if whole < lanes:
            done, at = 4 * whole, 4 * (column + whole)
            rest = (load(scale + done), load(shift + done), low, high)
            _add_part(args, table, at, lanes - whole, scratch + done, rest)
        store_buffer(args, 0, place, column, pixels, lanes, scratch, ending)
        column, scale, shift = column + LANES, scale + 64, shift + 64


@helper
def prepare(args, scratch, first, count):
    """Zeros, scale and shift for ``count`` channels, whole vectors: where each lies."""
    zeros, size = scratch + ZEROS, 4 * args[CHUNK]
    scales, shifts = zeros + size, zeros + 2 * size
    for i in range(0, count, LANES):
        scale, shift = factors(args, 0, first + i, count - i)
        store(zeros + 4 * i, splat(0.0))
        store(scales + 4 * i, scale)
        store(shifts + 4 * i, shift)
    return zeros, (scales, shifts)


@helper
def one_row(kind, args, task, line, table, scratch, limits):
    """A row of the output; ``task``: its first channel, the last, scale and shift."""
    first, last, scale, shift = task
    width, apart = args[OUT_WIDTH], 4 * args[1]
    plain, unit = args[7] <= CLIP and args[5] == 0, LANES if kind == ANY else HALF
    for x in range(0, width, PIXELS):
        pixels, place = min(PIXELS, width - x), line * width + x
        strip, middle = table + 8 * x * args[STRIDE_X], first
        if plain and pixels == PIXELS:
            middle = first + (last - first) // unit * unit
            target = (args[0] + place * apart + 4 * first, apart)
            factors_ = (scale, shift)
            _run(kind, args, strip, first, middle, target, factors_, limits)
        if middle < last:
            done = 4 * (middle - first)
            rest, span = (scale + done, shift + done), (middle, last)
            _by_vectors(kind, args, strip, place, pixels, span, scratch, rest, limits)


def depthwise_f32(args, begin, end, worker):
    """A task is a block of rows of the output and some channels."""
    channels, chunk = args[CHANNELS], args[CHUNK]
    chunks = -(-channels // chunk)
    scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    table = scratch + ZEROS + 12 * chunk
    limits, kind = bounds(args, 0), kind_of(args)
    for number in range(begin, end):
        first, row = number % chunks * chunk, number // chunks * args[BLOCK]
        last = min(first + chunk, channels)
        zeros, (scale, shift) = prepare(args, scratch, first, last - first)
        task = (first, last, scale, shift)
        for line in range(row, min(row + args[BLOCK], args[ROWS])):
            fill_table(args, table, line, zeros - 4 * first)
            one_row(kind, args, task, line, table, scratch, limits)
    return OK


EXPORTS = {"depthwise_f32": depthwise_f32}
