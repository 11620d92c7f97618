"""Rows times panels: the loops that linear layers, products and convolutions share.

What differs is where rows lie.  The reduction is cut into *lines*: 256 numbers of a
matrix row, a tap or a row of taps of a convolution.  A line of a tile lies in one piece
or, where a convolution crosses the border, in several (*splits*) of equal length.  The
*table* holds six addresses for each tile, line and split; *heads* before it the splits
of each tile.  Tiles have six rows, or five where that leaves none with few.

Some lines of a panel stay in the nearest cache while all tiles of a task pass over
them; short panels stay there together while tile after tile passes over them all.  What
comes next is fetched meanwhile.

Scratch of a worker: ``BLOCK_ROWS`` vectors of sums, then heads, then the table.
"""

from __future__ import annotations

from edgewise.kernels.native.abi import helper, i64
from edgewise.kernels.native.epilogue import (
    bounds,
    factors,
    is_plain,
    make_store_rows,
    store_buffer,
)
from edgewise.kernels.native.memory import load, prefetch, store
from edgewise.kernels.native.tile import make_products, make_zeros

ROWS, LANES = 6, 16
FEWEST = 4  # rows of the smallest tile: fewer are done as if they were four
BLOCK_ROWS = 96
NEAR = 256  # reduction indices of a panel that stay in the nearest cache: 16 KiB
LONG = 208  # products of a piece from which on fetching goes on among them
HEADS = BLOCK_ROWS * 64
TABLE = HEADS + BLOCK_ROWS // ROWS * 8
ENTRY = 8 * ROWS
BUFFER = 64 * ROWS

zeros = make_zeros(ROWS)


@helper
def evenly(rows):
    """How rows are cut into tiles: their number, rows of each, how many have one more.

    From 20 rows on a tile has five or six.
    """
    tiles = max(-(-rows // ROWS), 1)
    return tiles, rows // tiles, rows % tiles


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


def _make_pass(count: int, fetch: str = ""):
    """Lines of one tile of ``count`` rows and one panel.

    The sums end in ``buffer``, or, where they are whole and ``plain``, are stored.
    """
    products = make_products(count, ROWS, fetch)
    store_rows = make_store_rows(count)

    @helper
    def pass_over(args, at, place, source, span, more, ending, plain, buffer):
        table, splits, piece, panel = source
        begin, end, line, k = span
        sums = zeros() if begin == 0 else _kept_sums(buffer)
        for number in range(begin, end):
            start = number * line
            length = min(line, k - start)
            if splits > 1:
                length = piece
            for split in range(splits):
                b = panel + 64 * (start + split * length)
                sums = products(length, table + ENTRY * split, b, sums, more)
            table += ENTRY * splits
        if plain:
            store_rows(args, at, place[0], place[1], sums, ending)
        else:
            _keep(buffer, sums)

    return pass_over


_six, _six_long = _make_pass(ROWS), _make_pass(ROWS, "panel")
_six_first = _make_pass(ROWS, "rows")
_five, _few = _make_pass(5, "panel"), _make_pass(FEWEST)


@helper
def _fetch(address, lines):
    for line in range(lines):
        prefetch(address + 64 * line)


@helper
def _one_tile(args, at, rows, kind, place, source, span, more, ending, direct, buffer):
    """The pass for a tile of ``rows`` rows.

    ``kind`` is (pieces are short, bytes to the rows that come next or 0).
    """
    short, ahead = kind
    if short and rows == ROWS:
        _six(args, at, place, source, span, more, ending, direct, buffer)
    elif rows == ROWS and ahead != 0:
        more = (ahead, 0)
        _six_first(args, at, place, source, span, more, ending, direct, buffer)
    elif rows == ROWS:
        _six_long(args, at, place, source, span, more, ending, direct, buffer)
    elif rows == 5:
        _five(args, at, place, source, span, more, ending, direct, buffer)
    else:
        _few(args, at, place, source, span, more, ending, direct, buffer)


@helper
def _all_tiles(args, at, scratch, place, cut, shape, span, panel, lanes, kind, plain):
    """Some lines of a panel times all tiles; after the last line, the epilogue.

    ``kind`` is (pieces are short, what comes next are rows: not lines of a panel).
    """
    tiles, whole, longer = cut
    lines, piece, size = shape
    begin, end, line = span[0], span[1], span[2]
    short, fresh = kind
    row, column = place
    rate = 64 // tiles + 1
    after, share = panel + 64 * end * line, (end - begin) * line * rate
    scale, shift = factors(args, at, column, lanes)
    low, high = bounds(args, at)
    ending, done = (scale, shift, low, high), end == lines
    direct = plain and done and lanes == LANES and whole >= FEWEST
    heads = i64(scratch + HEADS)
    for tile in range(tiles):
        rows = whole + 1 if tile < longer else whole
        splits = heads[tile]
        table = scratch + TABLE + size * tile + ENTRY * begin * splits
        source, buffer = (table, splits, piece, panel), scratch + BUFFER * tile
        ahead = 0
        if short:
            _fetch(after, share // 64)
        elif fresh and tile + 1 < tiles:
            ahead = i64(table + size)[0] - i64(table)[0]
        ways, here, more = (short, ahead), (row, column), (after, rate)
        _one_tile(
            args, at, rows, ways, here, source, span, more, ending, direct, buffer
        )
        if done and not direct:
            store_buffer(args, at, row, column, rows, lanes, buffer, ending)
        row += rows
        after += share


@helper
def multiply(args, at, scratch, row, rows, shape, first, last, group, fresh):
    """Rows ``[row, row + rows)`` times panels ``[first, last)``, then the epilogue.

    ``shape`` is (K, length of a line, most splits of a line); ``group`` is (address of
    its panel 0, its first column): groups of a convolution share one output.  ``fresh``
    rows were not read by the task before.
    """
    k, line, most = shape
    lines, near = max(-(-k // line), 1), max(NEAR // line, 1)
    piece = line // most
    cut, walk = evenly(rows), (lines, piece, ENTRY * lines * most)
    plain = is_plain(args, at, row, rows)
    for p in range(first, last):
        panel, place = group[0] + 64 * k * p, (row, group[1] + p * LANES)
        lanes = min(args[at + 2] - p * LANES, LANES)
        kind = (piece < LONG, fresh and p == first)
        begin = 0
        while begin < lines:
            span = (begin, min(begin + near, lines), line, k)
            _all_tiles(
                args, at, scratch, place, cut, walk, span, panel, lanes, kind, plain
            )
            begin = span[1]
