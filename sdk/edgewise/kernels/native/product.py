"""Rows times panels: the loops that linear layers, products and convolutions share.

What differs is where rows lie.  The reduction is cut into *lines*: 256 numbers of a
matrix row, a tap or a row of taps of a convolution.  A line of a tile lies in one piece
or, where a convolution crosses the border, in several (*splits*) of equal length.  The
*table* holds six addresses for each tile of six rows, line and split; *heads* before it
the splits of each tile.  Some lines of a panel stay in the nearest cache while all
tiles of a task pass over them; what comes next is fetched meanwhile.

Scratch of a worker: ``BLOCK_ROWS`` vectors of sums, then heads, then the table.
"""

from __future__ import annotations

from edgewise.kernels.native.abi import helper, i64
from edgewise.kernels.native.epilogue import (
    bounds,
    factors,
    is_plain,
    store_buffer,
    store_rows,
)
from edgewise.kernels.native.memory import load, prefetch, store
from edgewise.kernels.native.tile import make_tile, make_zeros

ROWS, LANES = 6, 16
BLOCK_ROWS = 96
NEAR = 256  # reduction indices of a panel that stay in the nearest cache: 16 KiB
HEADS = BLOCK_ROWS * 64
TABLE = HEADS + BLOCK_ROWS // ROWS * 8
ENTRY = 8 * ROWS

_tile = make_tile(ROWS, 1)
zeros = make_zeros(ROWS)


@helper
def _kept_sums(buffer):
    return (
        load(buffer),
        load(buffer + 64),
        load(buffer + 128),
        load(buffer + 192),
        load(buffer + 256),
        load(buffer + 320),
    )


@helper
def _keep(buffer, sums):
    store(buffer, sums[0])
    store(buffer + 64, sums[1])
    store(buffer + 128, sums[2])
    store(buffer + 192, sums[3])
    store(buffer + 256, sums[4])
    store(buffer + 320, sums[5])


@helper
def _add_lines(table, splits, piece, begin, end, line, k, panel, sums):
    """Products of lines ``[begin, end)`` of one tile and one panel, added to ``sums``.

    ``table`` is where the addresses of the first of these lines lie; a line with
    several splits has pieces of ``piece``.
    """
    for number in range(begin, end):
        start = number * line
        length = min(line, k - start)
        if splits > 1:
            length = piece
        for split in range(splits):
            row = i64(table + ENTRY * split)
            rows = (row[0], row[1], row[2], row[3], row[4], row[5])
            sums = _tile(length, rows, panel + 64 * (start + split * length), 0, sums)
        table += ENTRY * splits
    return sums


@helper
def finish(args, at, row, column, lanes, rows, sums, ending, plain, buffer):
    """Store one tile: from registers where it is whole and plain."""
    if plain and rows == ROWS and lanes == LANES:
        store_rows(args, at, row, column, sums, ending)
    else:
        _keep(buffer, sums)
        store_buffer(args, at, row, column, rows, lanes, buffer, ending)


@helper
def _fetch(address, lines):
    for line in range(lines):
        prefetch(address + 64 * line)


@helper
def multiply(args, at, scratch, row, rows, shape, first, last, group):
    """Rows ``[row, row + rows)`` times panels ``[first, last)``, then the epilogue.

    ``shape`` is (K, length of a line, most splits of a line); ``group`` is (address of
    its panel 0, its first column): groups of a convolution share one output.
    """
    k, line, most = shape
    lines, near = max(-(-k // line), 1), max(NEAR // line, 1)
    heads = i64(scratch + HEADS)
    low, high = bounds(args, at)
    plain = is_plain(args, at, row, rows)
    for p in range(first, last):
        panel, column = group[0] + 64 * k * p, group[1] + p * LANES
        lanes = min(args[at + 2] - p * LANES, LANES)
        scale, shift = factors(args, at, column, lanes)
        ending = (scale, shift, low, high)
        begin = 0
        while begin < lines:
            end = min(begin + near, lines)
            fetched = (end - begin) * line * ROWS // rows + 1
            for tile in range(0, rows, ROWS):
                number = tile // ROWS
                _fetch(panel + 64 * (end * line + number * fetched), fetched)
                buffer = scratch + 64 * tile
                sums = zeros() if begin == 0 else _kept_sums(buffer)
                splits = heads[number]
                table = (
                    scratch + TABLE + ENTRY * (number * lines * most + begin * splits)
                )
                sums = _add_lines(
                    table, splits, line // most, begin, end, line, k, panel, sums
                )
                if end < lines:
                    _keep(buffer, sums)
                else:
                    these, place = min(ROWS, rows - tile), row + tile
                    finish(
                        args,
                        at,
                        place,
                        column,
                        lanes,
                        these,
                        sums,
                        ending,
                        plain,
                        buffer,
                    )
            begin = end
