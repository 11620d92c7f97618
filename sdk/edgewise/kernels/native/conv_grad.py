"""Gradients of packed weights, and weights turned round for gradients of images."""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, f32, helper, i64
from edgewise.kernels.native.memory import load, load_part, store
from edgewise.kernels.native.outer import make_outer
from edgewise.kernels.native.tile import make_zeros
from edgewise.kernels.native.turn import turn_block

LANES, ROWS = 16, 6
zeros = make_zeros(ROWS)
# Words of a weight gradient: where things are, then the window, then how work is cut.
(
    X,
    DY,
    OUT,
    X_ROW,  # elements from a row of the image to the next that windows begin in
    X_STEP,  # from one window to the next
    X_IMAGE,  # from one image to the next
    COUNT,  # windows of a row
    LINES,  # rows of windows of an image
    WINDOWS,  # in all
    OUTPUTS,  # channels of dy, all groups
    GROUPS,
    INPUTS,  # channels of x in a group
    EACH,  # channels of dy in a group
    TAPS_X,
    TAP_Y,  # elements from tap to tap
    TAP_X,
    K,
    TILES,  # of ROWS numbers of K, in a task
    PART,  # windows of a task: the sums of a part lie behind those of the one before
    BLOCK,  # windows that are done at once
    SCRATCH,
    SCRATCH_BYTES,
) = range(22)

_outer = make_outer(ROWS)


@helper
def _tap(args, k):
    """Elements from the first number of a window to its ``k``-th."""
    tap, channel = k // args[INPUTS], k % args[INPUTS]
    y, x = tap // args[TAPS_X], tap % args[TAPS_X]
    return y * args[TAP_Y] + x * args[TAP_X] + channel


@helper
def _fill_taps(args, table, first, last):
    """Bytes from the first number of a window to some; behind the last that again."""
    entry = i64(table)
    for k in range(first, last):
        entry[k - first] = 4 * _tap(args, k)
    for k in range(last, last + ROWS - 1):
        entry[k - first] = entry[last - 1 - first]


@helper
def _fill_windows(args, table, first, count):
    """Bytes from the image to where windows begin."""
    entry = i64(table)
    row, column = first // args[COUNT], first % args[COUNT]
    image, line = row // args[LINES], row % args[LINES]
    for i in range(count):
        place = image * args[X_IMAGE] + line * args[X_ROW] + column * args[X_STEP]
        entry[i] = 4 * place
        column += 1
        if column == args[COUNT]:
            column, line = 0, line + 1
        if line == args[LINES]:
            line, image = 0, image + 1


@helper
def _places(x, taps):
    """Addresses of six numbers of K in the first window there could be."""
    entry = i64(taps)
    return (
        x + entry[0],
        x + entry[1],
        x + entry[2],
        x + entry[3],
        x + entry[4],
        x + entry[5],
    )


@helper
def _store_tile(target, sums, rows, fresh):
    """Six rows of sums, or those that there are, stored or added to what is there."""
    for row in range(rows):
        value = sums[0]
        if row == 1:
            value = sums[1]
        elif row == 2:
            value = sums[2]
        elif row == 3:
            value = sums[3]
        elif row == 4:
            value = sums[4]
        elif row == 5:
            value = sums[5]
        if fresh:
            store(target + 64 * row, value)
        else:
            store(target + 64 * row, load(target + 64 * row) + value)


@helper
def _gather(args, panel, channel, lanes, first, count):
    """Some channels of dy at some windows, with zeros beside them."""
    step = 4 * args[OUTPUTS]
    source = args[DY] + first * step + 4 * channel
    for i in range(count):
        store(panel + 64 * i, load_part(source + i * step, lanes))


@helper
def _clear(target, first, last, panels, size):
    for panel in range(panels):
        for k in range(first, last):
            store(target + panel * size + 64 * k, zeros()[0])


@helper
def _add_block(args, task, tables, at, count, fresh):
    """Products of a block of windows, for all tiles and panels of a task."""
    x, channel, target, first, last = task
    panel, windows, taps = tables
    _fill_windows(args, windows, at, count)
    for column in range(0, args[EACH], LANES):
        lanes = min(args[EACH] - column, LANES)
        _gather(args, panel, channel + column, lanes, at, count)
        for k in range(first, last, ROWS):
            places = _places(x, taps + 8 * (k - first))
            sums = _outer(count, windows, places, panel, zeros())
            _store_tile(target + 64 * k, sums, min(ROWS, last - k), fresh)
        target += 64 * args[K]


def conv_weight_grad_f32(args, begin, end, worker):
    """A task is some windows, one group, some tiles of K; images lie in their padding.

    Of a block of windows all products are made before the next, so that x and dy come
    from memory once.
    """
    chunks = -(-args[K] // (ROWS * args[TILES]))
    panels = -(-args[EACH] // LANES)
    panel = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    windows = panel + 64 * args[BLOCK]
    taps = windows + 8 * args[BLOCK]
    for task in range(begin, end):
        place, part = task // chunks % args[GROUPS], task // chunks // args[GROUPS]
        k = task % chunks * args[TILES] * ROWS
        last = min(k + args[TILES] * ROWS, args[K])
        x = args[X] + 4 * place * args[INPUTS]
        target = args[OUT] + 64 * args[K] * panels * (part * args[GROUPS] + place)
        whole = (x, place * args[EACH], target, k, last)
        _fill_taps(args, taps, k, last)
        start = part * args[PART]
        stop = min(start + args[PART], args[WINDOWS])
        for at in range(start, stop, args[BLOCK]):
            count = min(args[BLOCK], stop - at)
            tables = (panel, windows, taps)
            _add_block(args, whole, tables, at, count, at == start)
        if start >= stop:
            _clear(target, k, last, panels, 64 * args[K])
    return OK


@helper
def _turn_tile(x, y, many):
    """Sixteen outputs of sixteen inputs, or as ``many`` as there are; zeros beside."""
    if many[0] == LANES and many[1] == LANES:
        half = LANES // 2
        for i in range(0, LANES, half):
            for j in range(0, LANES, half):
                turn_block(x + 64 * i + 4 * j, 64, y + 64 * j + 4 * i, 64)
    else:
        source, target = f32(x), f32(y)
        for o in range(many[0]):
            for lane in range(LANES):
                inside = lane < many[1]
                value = source[lane * LANES + o] if inside else np.float32(0.0)
                target[o * LANES + lane] = value


def turn_panels_f32(args, begin, end, worker):
    """Panels of a convolution's weights with inputs and outputs exchanged.

    Of the taps those are taken that are ``start``, ``start + step``, … along each axis,
    the last first.  A task is one panel of the result, of ``inputs`` columns a group.
    Words: weights, out; inputs and outputs of a group; taps along y and x; first,
    step, number of those taken along y; the same along x.
    """
    inputs, outputs = args[2], args[3]
    taps_x, k = args[5], args[4] * args[5] * inputs
    first_y, step_y, many_y = args[6], args[7], args[8]
    first_x, step_x, many_x = args[9], args[10], args[11]
    each, given = -(-inputs // LANES), -(-outputs // LANES)
    size = many_y * many_x * outputs
    for panel in range(begin, end):
        group, column = panel // each, panel % each * LANES
        for tap in range(many_y * many_x):
            r = first_y + step_y * (many_y - 1 - tap // many_x)
            s = first_x + step_x * (many_x - 1 - tap % many_x)
            row = (r * taps_x + s) * inputs + column
            for o in range(0, outputs, LANES):
                x = 64 * ((group * given + o // LANES) * k + row)
                y = 64 * (size * panel + tap * outputs + o)
                many = min(outputs - o, LANES), min(inputs - column, LANES)
                _turn_tile(args[0] + x, args[1] + y, many)
    return OK


EXPORTS = {
    "conv_weight_grad_f32": conv_weight_grad_f32,
    "turn_panels_f32": turn_panels_f32,
}
