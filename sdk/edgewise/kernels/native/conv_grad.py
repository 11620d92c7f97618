"""Gradients of packed weights, and weights turned round for gradients of images."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, f32, helper
from edgewise.kernels.native.memory import load, load_part, store
from edgewise.kernels.native.outer import make_outer
from edgewise.kernels.native.product import zeros

LANES, ROWS = 16, 6
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
    IMAGES,
    OUTPUTS,  # channels of dy, all groups
    INPUTS,  # channels of x in a group
    EACH,  # channels of dy in a group
    TAPS_X,
    TAP_Y,  # elements from tap to tap
    TAP_X,
    K,
    TILES,  # of ROWS numbers of K, in a task
    PIECE,  # windows of a line that are done at once
    BLOCK,  # lines that are done at once
    SCRATCH,
    SCRATCH_BYTES,
) = range(21)

_outer = make_outer(ROWS)


@helper
def _tap(args, k):
    """Elements from the first number of a window to its ``k``-th."""
    tap, channel = k // args[INPUTS], k % args[INPUTS]
    y, x = tap // args[TAPS_X], tap % args[TAPS_X]
    return y * args[TAP_Y] + x * args[TAP_X] + channel


@helper
def _tile_places(args, base, k):
    """Addresses of six numbers of K; beyond the last the last again."""
    last = args[K] - 1
    return (
        base + 4 * _tap(args, min(k, last)),
        base + 4 * _tap(args, min(k + 1, last)),
        base + 4 * _tap(args, min(k + 2, last)),
        base + 4 * _tap(args, min(k + 3, last)),
        base + 4 * _tap(args, min(k + 4, last)),
        base + 4 * _tap(args, min(k + 5, last)),
    )


@helper
def _moved(places, offset):
    return (
        places[0] + offset,
        places[1] + offset,
        places[2] + offset,
        places[3] + offset,
        places[4] + offset,
        places[5] + offset,
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
def _line_at(args, line):
    """Elements from the start of x to where the windows of a line begin."""
    image, row = line // args[LINES], line % args[LINES]
    return image * args[X_IMAGE] + row * args[X_ROW]


@helper
def _widened(args, scratch, dy, first, lines, piece, size, lanes):
    """A copy of some columns of ``dy`` with zeros beside them, line by line."""
    for line in range(lines):
        row = (first + line) * args[COUNT] + piece
        for pixel in range(size):
            source = dy + 4 * (row + pixel) * args[OUTPUTS]
            store(scratch + 64 * (line * size + pixel), load_part(source, lanes))


@helper
def _add_block(args, task, first, lines, piece, size, fresh):
    """Products of a block of windows, for all tiles of a task.

    ``task`` is (address of x, of dy, of the panel, first number of K, behind the last,
    elements from window to window of dy in bytes, from line to line of dy).
    """
    x, dy, target, k, end, step, jump = task
    while k < end:
        places = _tile_places(args, x, k)
        sums = zeros()
        for line in range(lines):
            at = 4 * (_line_at(args, first + line) + piece * args[X_STEP])
            here = dy + line * jump
            sums = _outer(size, _moved(places, at), 4 * args[X_STEP], here, step, sums)
        _store_tile(target + 64 * k, sums, min(ROWS, args[K] - k), fresh)
        k += ROWS


def conv_weight_grad_f32(args, begin, end, worker):
    """A task is some tiles of one panel of one group; images lie in their padding."""
    per_panel = -(-args[K] // (ROWS * args[TILES]))
    panels = -(-args[EACH] // LANES)
    lines_all = args[IMAGES] * args[LINES]
    scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
    for task in range(begin, end):
        chunk, place = task % per_panel, task // per_panel
        group, column = place // panels, place % panels * LANES
        lanes = min(args[EACH] - column, LANES)
        x = args[X] + 4 * group * args[INPUTS]
        dy = args[DY] + 4 * (group * args[EACH] + column)
        target = args[OUT] + 64 * args[K] * place
        k = chunk * args[TILES] * ROWS
        last = min(k + args[TILES] * ROWS, args[K])
        fresh = True
        for first in range(0, lines_all, args[BLOCK]):
            lines = min(args[BLOCK], lines_all - first)
            for piece in range(0, args[COUNT], args[PIECE]):
                size = min(args[PIECE], args[COUNT] - piece)
                if lanes < LANES:
                    _widened(args, scratch, dy, first, lines, piece, size, lanes)
                    part = (x, scratch, target, k, last, 64, 64 * size)
                else:
                    row = 4 * args[OUTPUTS]
                    here = dy + (first * args[COUNT] + piece) * row
                    part = (x, here, target, k, last, row, args[COUNT] * row)
                _add_block(args, part, first, lines, piece, size, fresh)
                fresh = False
        if fresh:  # no windows at all
            for number in range(k, last):
                store(target + 64 * number, zeros()[0])
    return OK


def turn_panels_f32(args, begin, end, worker):
    """Panels of a convolution's weights with inputs and outputs exchanged.

    Of the taps those are taken that are ``start``, ``start + step``, … along each axis,
    the last first.  A task is one panel of the result, of ``inputs`` columns a group.
    Words: weights, out; inputs and outputs of a group; taps along y and x; first,
    step, number of those taken along y; the same along x.
    """
    w, inputs, outputs = f32(args[0]), args[2], args[3]
    taps_x, k = args[5], args[4] * args[5] * inputs
    first_y, step_y, many_y = args[6], args[7], args[8]
    first_x, step_x, many_x = args[9], args[10], args[11]
    each, given = -(-inputs // LANES), -(-outputs // LANES)
    size = many_y * many_x * outputs
    for panel in range(begin, end):
        group, column = panel // each, panel % each * LANES
        y = f32(args[1] + 64 * size * panel)
        for tap in range(many_y * many_x):
            r = first_y + step_y * (many_y - 1 - tap // many_x)
            s = first_x + step_x * (many_x - 1 - tap % many_x)
            row = (r * taps_x + s) * inputs + column
            for o in range(outputs):
                source = ((group * given + o // LANES) * k + row) * LANES + o % LANES
                target = (tap * outputs + o) * LANES
                for lane in range(LANES):
                    inside = column + lane < inputs
                    y[target + lane] = w[source + lane * LANES] if inside else 0.0
    return OK


EXPORTS = {
    "conv_weight_grad_f32": conv_weight_grad_f32,
    "turn_panels_f32": turn_panels_f32,
}
