"""Depthwise convolutions over bytes: as over reals, which hold their sums exactly.

Bytes become reals in registers; products of two of them and sums of up to 512 products
stay below 2**24.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, helper, i64, u8
from edgewise.kernels.native.depthwise import (
    ANY,
    BLOCK,
    CHANNELS,
    CHUNK,
    COLUMNS,
    DILATION_X,
    KERNEL_X,
    KERNEL_Y,
    OUT_WIDTH,
    ROWS,
    SCRATCH,
    SCRATCH_BYTES,
    STRIDE_X,
    WEIGHT,
    kind_of,
    make_fill_table,
)
from edgewise.kernels.native.epilogue import CLIP
from edgewise.kernels.native.memory import (
    load_bytes_part,
    load_part,
    store,
    store_i32,
)
from edgewise.kernels.native.requantize import REAL, ending, store_reals
from edgewise.kernels.native.vector import (
    LANES,
    fma,
    from_bits,
    from_i8,
    from_u8,
    splat,
    splat_i32,
    to_f32,
)
from edgewise.kernels.native.window import (
    HALF,
    PIXELS,
    SIGNED,
    SIGNED_SUMS,
    UNSIGNED,
    UNSIGNED_SUMS,
    Strip,
    make_any_strip,
    make_strip,
)

# Scratch of a worker: a strip, ones, zeros; then for the channels of a task what lies
# outside, scale, shift and what is added to the sums; then the table.
ONES, ZEROS = 64 * PIXELS, 64 * PIXELS + 64
NOTHING = ZEROS + 64
OUTSIDE = SCRATCH_BYTES + 1  # the word: four times the byte beyond the border

_fill_table = make_fill_table(1)


def _make_run(strip, unit):
    """Channels ``[begin, end)`` of a strip, whole units, as bytes to ``out``."""

    @helper
    def run(args, table, begin, end, out, pitch, places, limits):
        rows, across, step = args[KERNEL_Y], 8 * args[COLUMNS], 4 * args[CHANNELS]
        shape = (args[KERNEL_X], 8 * args[STRIDE_X], 8 * args[DILATION_X])
        scale, shift, centre = places
        for column in range(begin, end, unit):
            at = 4 * column
            far, weight = 4 * (column - begin), args[WEIGHT] + at
            ending_ = (out, pitch, scale + far, shift + far, centre + far)
            strip(rows, table, across, weight, step, at, ending_, limits, shape)
            out += unit

    return run


def _make_runs(kind: Strip):
    """``runs``: as ``run``, by the strip that fits the window best."""
    run_3 = _make_run(make_strip(3, 1, kind), HALF)
    run_3_2 = _make_run(make_strip(3, 2, kind), HALF)
    run_5 = _make_run(make_strip(5, 1, kind), HALF)
    run_5_2 = _make_run(make_strip(5, 2, kind), HALF)
    run_7 = _make_run(make_strip(7, 1, kind), HALF)
    run_any = _make_run(make_any_strip(kind), LANES)

    @helper
    def runs(way, args, table, begin, end, out, pitch, places, limits):
        if way == 1:
            run_3(args, table, begin, end, out, pitch, places, limits)
        elif way == 2:
            run_3_2(args, table, begin, end, out, pitch, places, limits)
        elif way == 3:
            run_5(args, table, begin, end, out, pitch, places, limits)
        elif way == 4:
            run_5_2(args, table, begin, end, out, pitch, places, limits)
        elif way == 5:
            run_7(args, table, begin, end, out, pitch, places, limits)
        else:
            run_any(args, table, begin, end, out, pitch, places, limits)

    return runs


def _make_sums(kind: Strip, widen):
    """``sums(args, table, column, lanes, scratch)``: up to sixteen channels of a strip.

    For what cannot be stored at once.
    """
    strip = make_any_strip(kind)

    @helper
    def part(args, table, column, lanes, out):
        taps, step = args[KERNEL_X], 4 * args[CHANNELS]
        weight = args[WEIGHT] + 4 * column
        for pixel in range(PIXELS):
            total = splat(0.0)
            for r in range(args[KERNEL_Y]):
                entry = i64(table + 8 * (r * args[COLUMNS] + pixel * args[STRIDE_X]))
                for s in range(taps):
                    at = entry[s * args[DILATION_X]] + column
                    x = to_f32(widen(load_bytes_part(at, lanes)))
                    w = load_part(weight + step * (r * taps + s), lanes)
                    total = fma(x, w, total)
            store(out + 64 * pixel, total)

    @helper
    def sums(args, table, column, lanes, scratch):
        if lanes < LANES:
            part(args, table, column, lanes, scratch)
            return
        rows, across, step = args[KERNEL_Y], 8 * args[COLUMNS], 4 * args[CHANNELS]
        shape = (args[KERNEL_X], 8 * args[STRIDE_X], 8 * args[DILATION_X])
        at, limits = 4 * column, (splat(-np.inf), splat(np.inf))
        end = (scratch, 64, scratch + ONES, scratch + ZEROS)
        strip(rows, table, across, args[WEIGHT] + at, step, at, end, limits, shape)

    return sums


@helper
def _prepare(args, scratch, first, count):
    """What lies outside, and the factors of ``count`` channels: where each lies."""
    outside, size = scratch + NOTHING, 4 * args[CHUNK]
    scales = outside + args[CHUNK]
    shifts, centres = scales + size, scales + 2 * size
    for i in range(0, count, 4 * LANES):
        store_i32(outside + i, splat_i32(np.int32(args[OUTSIDE])))
    for i in range(0, count, LANES):
        end = ending(args, 0, first + i, min(count - i, LANES))
        store(scales + 4 * i, end[1])
        store(shifts + 4 * i, end[2])
        store(centres + 4 * i, to_f32(end[0]))
    return outside, (scales, shifts, centres)


@helper
def _copy(source, target, pitch, pixels, count):
    """``count`` bytes of each of some pixels, 16 bytes apart in scratch."""
    for pixel in range(pixels):
        x, y = u8(source + LANES * pixel), u8(target + pitch * pixel)
        for i in range(count):
            y[i] = x[i]


def _make_line(kind: Strip, sums_kind: Strip, widen):
    """A row of the output, strip by strip; ``task``: channels, outside, factors."""
    runs, sums = _make_runs(kind), _make_sums(sums_kind, widen)

    @helper
    def one_strip(way, args, strip, place, pixels, task, scratch):
        first, last, places, limits = task
        pitch, unit = args[1], LANES if way == ANY else HALF
        out = args[0] + place * pitch + first
        plain = args[7] <= CLIP and args[5] == 0 and args[12] != REAL
        middle = first + (last - first) // unit * unit if plain else first
        if pixels == PIXELS:
            runs(way, args, strip, first, middle, out, pitch, places, limits)
        else:
            for column in range(first, middle, unit):
                far = 4 * (column - first)
                here = (places[0] + far, places[1] + far, places[2] + far)
                end = column + unit
                runs(way, args, strip, column, end, scratch, LANES, here, limits)
                _copy(scratch, out + column - first, pitch, pixels, unit)
        for column in range(middle, last, LANES):
            lanes = min(last - column, LANES)
            sums(args, strip, column, lanes, scratch)
            tail = ending(args, 0, column, lanes)
            store_reals(args, 0, place, column, pixels, lanes, scratch, tail)

    @helper
    def one_line(way, args, line, table, task, scratch):
        width = args[OUT_WIDTH]
        for x in range(0, width, PIXELS):
            strip, pixels = table + 8 * x * args[STRIDE_X], min(PIXELS, width - x)
            one_strip(way, args, strip, line * width + x, pixels, task, scratch)

    return one_line


def _make_depthwise(kind: Strip, sums_kind: Strip, widen):
    """A task is a block of rows of the output and some channels."""
    one_line = _make_line(kind, sums_kind, widen)

    def depthwise(args, begin, end, worker):
        channels, chunk = args[CHANNELS], args[CHUNK]
        chunks, way = -(-channels // chunk), kind_of(args)
        scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
        table = scratch + NOTHING + 13 * chunk
        store(scratch + ONES, splat(1.0))
        store(scratch + ZEROS, splat(0.0))
        whole = ending(args, 0, 0, 1)
        limits = (whole[6], whole[7], from_bits(whole[8]))
        for number in range(begin, end):
            first, row = number % chunks * chunk, number // chunks * args[BLOCK]
            last = min(first + chunk, channels)
            outside, places = _prepare(args, scratch, first, last - first)
            task = (first, last, places, limits)
            for line in range(row, min(row + args[BLOCK], args[ROWS])):
                _fill_table(args, table, line, outside - first)
                one_line(way, args, line, table, task, scratch)
        return OK

    return depthwise


EXPORTS = {
    "depthwise_u8": _make_depthwise(UNSIGNED, UNSIGNED_SUMS, from_u8),
    "depthwise_i8": _make_depthwise(SIGNED, SIGNED_SUMS, from_i8),
}
