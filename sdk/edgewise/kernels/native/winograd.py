"""Convolutions of 3 x 3 by minimal filtering: F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3).

An output tile of m x m pixels needs an input tile of (m + 2) x (m + 2).  Both it and
the weights are transformed; then each of the (m + 2)^2 *positions* is a product of its
own, tiles x channels by channels x outputs, and the products are transformed back.

Transformed inputs of a *block* of tiles are ``[position, tile, channel]``, whole
vectors of channels, and after each position one vector of nothing: without it all
positions would fall on the same lines of a cache.  Transformed weights are
``[panel, position, channel, 16]``: a task reads them once, from front to back.
"""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, helper
from edgewise.kernels.native.epilogue import (
    EPILOGUE_WORDS,
    bounds,
    factors,
    is_plain,
    store_buffer,
    store_line,
)
from edgewise.kernels.native.memory import load_part, store
from edgewise.kernels.native.tile import make_rows
from edgewise.kernels.native.transform import TAPS, make_lines, matrices
from edgewise.kernels.native.vector import splat

LANES, ROWS = 16, 6
# Words after the epilogue: the image, its tiles, how work is cut, memory.
(
    X,
    HEIGHT,
    WIDTH,
    CHANNELS,
    X_STEP,
    OUT_HEIGHT,
    OUT_WIDTH,
    TOP,
    LEFT,
    TILES_X,
    TILES_Y,
    TILES,
    BLOCK,
    CHUNK,
    WEIGHT,
    INPUTS,
    SCRATCH,
    SCRATCH_BYTES,
) = range(EPILOGUE_WORDS, EPILOGUE_WORDS + 18)

_six, _five, _four = make_rows(6), make_rows(5), make_rows(4)
_three, _two, _one = make_rows(3), make_rows(2), make_rows(1)


@helper
def _pitch(args):
    """Bytes from one position of transformed inputs to the next."""
    return 64 * (args[BLOCK] * -(-args[CHANNELS] // LANES) + 1)


@helper
def _place(args, tile):
    """Image, row and column of a tile."""
    row = tile // args[TILES_X]
    return row // args[TILES_Y], row % args[TILES_Y], tile % args[TILES_X]


@helper
def _rows(rows, k, a, step, b, out, ahead):
    if rows == 6:
        _six(k, a, step, b, out, ahead)
    elif rows == 5:
        _five(k, a, step, b, out, ahead)
    elif rows == 4:
        _four(k, a, step, b, out, ahead)
    elif rows == 3:
        _three(k, a, step, b, out, ahead)
    elif rows == 2:
        _two(k, a, step, b, out, ahead)
    else:
        _one(k, a, step, b, out, ahead)


@helper
def _multiply(args, inputs, weight, out, count, positions):
    """Products of all positions of a block with one panel: ``[position, tile, 16]``.

    Rows are dealt out evenly: 49 are four times six and five times five.
    """
    channels, pitch = args[CHANNELS], _pitch(args)
    step, panel = 64 * -(-channels // LANES), 64 * channels
    pieces = -(-count // ROWS)
    few, more = count // pieces, count % pieces
    for position in range(positions):
        a, target = inputs + pitch * position, out + 64 * args[BLOCK] * position
        ahead = weight + panel
        for piece in range(pieces):
            rows = few + 1 if piece < more else few
            _rows(rows, channels, a, step, weight, target, ahead)
            a, target = a + step * rows, target + 64 * rows
            ahead += panel // 2
        weight += panel


@helper
def _copy(args, place, channel, side, out):
    """A tile that the border or the last channel cuts, zeros beyond."""
    image, top, left = place
    height, width, channels = args[HEIGHT], args[WIDTH], args[CHANNELS]
    lanes = min(channels - channel, LANES)
    for i in range(side):
        row = (image * height + top + i) * width
        for j in range(side):
            value, v, u = splat(0.0), top + i, left + j
            if v >= 0 and v < height and u >= 0 and u < width:
                at = args[X] + 4 * ((row + u) * args[X_STEP] + channel)
                value = load_part(at, lanes)
            store(out + 64 * (side * i + j), value)


def make(size: int):
    """The kernels of F(size x size, 3 x 3): weights, inputs, products."""
    side = size + TAPS - 1
    made = matrices(size)
    input_lines, weight_lines = make_lines(made.inputs), make_lines(made.weights)
    output_lines = make_lines(made.outputs)

    def weights(args, begin, end, worker):
        """A task is a panel.  Words: panels, result, channels.

        Rows first, into the last three columns of the result; then, from the first row
        on, columns, each row over what it was made of.
        """
        channels = args[2]
        right, down = 64 * channels, 64 * channels * side
        for panel in range(begin, end):
            for channel in range(channels):
                source = args[0] + 64 * (TAPS * TAPS * channels * panel + channel)
                target = args[1] + 64 * (side * side * channels * panel + channel)
                half = target + right * (side - TAPS)
                for j in range(TAPS):
                    tap = source + right * j
                    weight_lines(tap, right * TAPS, half + right * j, down)
                for i in range(side):
                    weight_lines(half + down * i, right, target + down * i, right)
        return OK

    @helper
    def transform(args, tile, target, work):
        """One tile, all channels."""
        image, y, x = _place(args, tile)
        top, left = size * y - args[TOP], size * x - args[LEFT]
        height, width, channels = args[HEIGHT], args[WIDTH], args[CHANNELS]
        inside = top >= 0 and top + side <= height
        inside = inside and left >= 0 and left + side <= width
        pitch = _pitch(args)
        start = args[X] + 4 * ((image * height + top) * width + left) * args[X_STEP]
        half = work + 64 * side * side
        for channel in range(0, channels, LANES):
            source, right = start + 4 * channel, 4 * args[X_STEP]
            down = right * width
            if not inside or channel + LANES > channels:
                _copy(args, (image, top, left), channel, side, work)
                source, down, right = work, 64 * side, 64
            for j in range(side):
                input_lines(source + right * j, down, half + 64 * j, 64 * side)
            for i in range(side):
                row = target + 4 * channel + pitch * side * i
                input_lines(half + 64 * side * i, 64, row, pitch)

    @helper
    def back(args, tile, products, column, lanes, ending, plain, work):
        """One tile of sixteen outputs, and the epilogue."""
        image, y, x = _place(args, tile)
        block = 64 * args[BLOCK]
        for j in range(side):
            output_lines(products + block * j, block * side, work + 64 * j, 64 * side)
        sums = work + 64 * side * size
        across = min(size, args[OUT_WIDTH] - size * x)
        for i in range(min(size, args[OUT_HEIGHT] - size * y)):
            output_lines(work + 64 * side * i, 64, sums, 64)
            row = image * args[OUT_HEIGHT] + size * y + i
            row = row * args[OUT_WIDTH] + size * x
            if plain and lanes == LANES:
                store_line(args, 0, row, column, across, sums, ending)
            else:
                store_buffer(args, 0, row, column, across, lanes, sums, ending)

    def inputs(args, begin, end, worker):
        """A task is a tile."""
        work = args[SCRATCH] + args[SCRATCH_BYTES] * worker
        size_of_block, step = (
            side * side * _pitch(args),
            64 * -(-args[CHANNELS] // LANES),
        )
        for tile in range(begin, end):
            target = args[INPUTS] + size_of_block * (tile // args[BLOCK])
            transform(args, tile, target + step * (tile % args[BLOCK]), work)
        return OK

    def products(args, begin, end, worker):
        """A task is a block of tiles and some panels.

        Inputs are transformed before, where ``INPUTS`` says, or here.
        """
        panels = -(-args[2] // LANES)
        chunks = -(-panels // args[CHUNK])
        scratch = args[SCRATCH] + args[SCRATCH_BYTES] * worker
        out = scratch + 64 * side * side * 2
        own = out + 64 * side * side * args[BLOCK]
        step = 64 * -(-args[CHANNELS] // LANES)
        low, high = bounds(args, 0)
        images = args[TILES] // (args[TILES_X] * args[TILES_Y])
        plain = is_plain(args, 0, 0, images * args[OUT_HEIGHT] * args[OUT_WIDTH])
        filled = -1
        for task in range(begin, end):
            block = task // chunks
            first = block * args[BLOCK]
            count = min(args[BLOCK], args[TILES] - first)
            found = own
            if args[INPUTS] != 0:
                found = args[INPUTS] + side * side * _pitch(args) * block
            elif filled != block:
                for tile in range(count):
                    transform(args, first + tile, own + step * tile, scratch)
                filled = block
            panel = task % chunks * args[CHUNK]
            for p in range(panel, min(panel + args[CHUNK], panels)):
                column = p * LANES
                lanes = min(args[2] - column, LANES)
                scale, shift = factors(args, 0, column, lanes)
                ending = (scale, shift, low, high)
                weight = args[WEIGHT] + 64 * side * side * args[CHANNELS] * p
                _multiply(args, found, weight, out, count, side * side)
                for tile in range(count):
                    back(
                        args,
                        first + tile,
                        out + 64 * tile,
                        column,
                        lanes,
                        ending,
                        plain,
                        scratch,
                    )
        return OK

    return weights, inputs, products


def _exports() -> dict[str, object]:
    found = {}
    for size in (2, 4):
        names = ("weights", "inputs", "products")
        for name, function in zip(names, make(size), strict=True):
            found[f"winograd{size}_{name}_f32"] = function
    return found


EXPORTS = _exports()
