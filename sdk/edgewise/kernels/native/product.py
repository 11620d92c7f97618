"""Rows times panels: the loops that linear layers, products and convolutions share.

What differs is where rows lie.  The reduction is cut into *lines*: 256 numbers of a
matrix row, a tap or a row of taps of a convolution.  A line of a tile lies in one piece
or, where a convolution crosses the border, in several (*splits*) of equal length.  The
*table* holds six addresses for each tile, line and split; *heads* before it the splits
of each tile.  Tiles have six rows, or five where that leaves none with few; sums of
pairs of bytes leave registers for five, or four.

Some lines of a panel stay in the nearest cache while all tiles of a task pass over
them; short panels stay there together while tile after tile passes over them all.  What
comes next is fetched meanwhile.

Panels of few bits are widened to float32 some lines at a time, into scratch, from where
all tiles of a task read them (``narrow``).

Scratch of a worker: ``BLOCK_ROWS`` vectors of sums, then heads, then the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from edgewise.kernels.native import epilogue
from edgewise.kernels.native.abi import helper, i64
from edgewise.kernels.native.memory import load, load_i32, prefetch, store, store_i32
from edgewise.kernels.native.tile import REALS, Sums, make_products
from edgewise.kernels.native.vector import f32x16

ROWS, LANES = 6, 16
FEWEST = 4  # rows of the smallest tile: fewer are done as if they were four
BLOCK_ROWS = 96
NEAR = 256  # reduction indices of a panel that stay in the nearest cache: 16 KiB
LONG = 208  # products of a piece from which on fetching goes on among them
HEADS = BLOCK_ROWS * 64
TABLE = HEADS + BLOCK_ROWS // ROWS * 8
ENTRY = 8 * ROWS
BUFFER = 64 * ROWS


class Ending(NamedTuple):
    """What is done to sums, as helpers that ``epilogue`` describes.

    ``start`` gives, of what ``factors`` gave, what sums begin with.
    """

    factors: Callable[..., object]
    start: Callable[..., object]
    is_plain: Callable[..., bool]
    make_store_rows: Callable[[int], Callable[..., None]]
    store_buffer: Callable[..., None]


STORED = Ending(
    epilogue.ending,
    epilogue.start,
    epilogue.is_plain,
    epilogue.make_store_rows,
    epilogue.store_buffer,
)


class Panels(NamedTuple):
    """How panels lie in memory, as helpers.

    Attributes:
        place: ``place(args, at, panels, k, p)``: the address of panel ``p``.
        lines: ``lines(args, at, scratch, panel, begin, end)``: indices ``begin`` to
            ``end`` of a panel, 64 bytes each, lie from here plus ``64 * begin`` on.
    """

    place: Callable[..., int]
    lines: Callable[..., int]


@helper
def _place(args, at, panels, k, p):
    return panels + 64 * k * p


@helper
def _lines(args, at, scratch, panel, begin, end):
    return panel


AS_THEY_ARE = Panels(_place, _lines)


@helper
def evenly(rows, most):
    """How rows are cut into tiles: their number, rows of each, how many have one more.

    From 20 rows on a tile has ``most`` rows or one less.
    """
    tiles = max(-(-rows // most), 1)
    return tiles, rows // tiles, rows % tiles


def _make_buffer(kind: Sums):
    """Functions that read and write the sums of a tile."""
    real = kind.vector is f32x16
    read, write = (load, store) if real else (load_i32, store_i32)

    @helper
    def kept(buffer):
        return (
            read(buffer),
            read(buffer + 64),
            read(buffer + 128),
            read(buffer + 192),
            read(buffer + 256),
            read(buffer + 320),
        )

    @helper
    def keep(buffer, sums):
        write(buffer, sums[0])
        write(buffer + 64, sums[1])
        write(buffer + 128, sums[2])
        write(buffer + 192, sums[3])
        write(buffer + 256, sums[4])
        write(buffer + 320, sums[5])

    return kept, keep


def _make_pass(kind: Sums, ending: Ending, count: int, fetch: str = ""):
    """Lines of one tile of ``count`` rows and one panel.

    The sums end in ``buffer``, or, where they are whole and ``plain``, are stored.
    """
    products, first = make_products(count, ROWS, fetch, kind), ending.start
    store_rows = ending.make_store_rows(count)
    kept, keep = _make_buffer(kind)

    @helper
    def starts(end):
        one = first(end)
        return (one, one, one, one, one, one)

    @helper
    def pass_over(args, at, place, source, span, more, end, plain, buffer):
        table, splits, piece, panel = source
        begin, until, line, k = span
        sums = starts(end) if begin == 0 else kept(buffer)
        for number in range(begin, until):
            start = number * line
            length = min(line, k - start)
            if splits > 1:
                length = piece
            for split in range(splits):
                b = panel + 64 * (start + split * length)
                sums = products(length, table + ENTRY * split, b, sums, more)
            table += ENTRY * splits
        if plain:
            store_rows(args, at, place[0], place[1], sums, end)
        else:
            keep(buffer, sums)

    return pass_over


@helper
def _fetch(address, lines):
    for line in range(lines):
        prefetch(address + 64 * line)


def _make_one_tile(kind: Sums, ending: Ending):
    """The pass for a tile of ``rows`` rows.

    ``ways`` is (pieces are short, bytes to the rows that come next or 0).
    """
    most = kind.rows
    most_short, most_long, most_first = (
        _make_pass(kind, ending, most, fetch) for fetch in ("", "panel", "rows")
    )
    less, few = (
        _make_pass(kind, ending, most - 1, "panel"),
        _make_pass(kind, ending, FEWEST),
    )

    @helper
    def one_tile(args, at, rows, ways, place, source, span, more, end, direct, buffer):
        short, ahead = ways
        if short and rows == most:
            most_short(args, at, place, source, span, more, end, direct, buffer)
        elif rows == most and ahead != 0:
            more = (ahead, 0)
            most_first(args, at, place, source, span, more, end, direct, buffer)
        elif rows == most:
            most_long(args, at, place, source, span, more, end, direct, buffer)
        elif rows == most - 1:
            less(args, at, place, source, span, more, end, direct, buffer)
        else:
            few(args, at, place, source, span, more, end, direct, buffer)

    return one_tile


def _make_all_tiles(kind: Sums, ending: Ending):
    """Some lines of a panel times all tiles; after the last line, the epilogue.

    ``how`` is (pieces are short, what comes next are rows: not lines of a panel).
    """
    one_tile = _make_one_tile(kind, ending)
    factors, store_buffer = ending.factors, ending.store_buffer

    @helper
    def all_tiles(args, at, scratch, place, cut, shape, span, panel, lanes, how, plain):
        tiles, whole, longer = cut
        lines, piece, size = shape
        begin, until, line = span[0], span[1], span[2]
        short, fresh = how
        row, column = place
        rate = 64 // tiles + 1
        after, share = panel + 64 * until * line, (until - begin) * line * rate
        end, done = factors(args, at, column, lanes), until == lines
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
            one_tile(
                args, at, rows, ways, here, source, span, more, end, direct, buffer
            )
            if done and not direct:
                store_buffer(args, at, row, column, rows, lanes, buffer, end)
            row += rows
            after += share

    return all_tiles


def make_multiply(
    kind: Sums = REALS, ending: Ending = STORED, panels: Panels = AS_THEY_ARE
):
    """Rows ``[row, row + rows)`` times panels ``[first, last)``, then the epilogue.

    ``shape`` is (K, length of a line, most splits of a line); ``group`` is (address of
    its panel 0, its first column): groups of a convolution share one output.  ``fresh``
    rows were not read by the task before.
    """
    all_tiles, is_plain = _make_all_tiles(kind, ending), ending.is_plain
    most_rows = kind.rows
    place_of, lines_of = panels.place, panels.lines

    @helper
    def multiply(args, at, scratch, row, rows, shape, first, last, group, fresh):
        k, line, most = shape
        lines, near = max(-(-k // line), 1), max(NEAR // line, 1)
        piece = line // most
        cut, walk = evenly(rows, most_rows), (lines, piece, ENTRY * lines * most)
        plain = is_plain(args, at, row, rows)
        for p in range(first, last):
            stored = place_of(args, at, group[0], k, p)
            place = (row, group[1] + p * LANES)
            lanes = min(args[at + 2] - p * LANES, LANES)
            how = (piece < LONG, fresh and p == first)
            begin = 0
            while begin < lines:
                span = (begin, min(begin + near, lines), line, k)
                end = min(span[1] * line, k)
                panel = lines_of(args, at, scratch, stored, begin * line, end)
                all_tiles(
                    args, at, scratch, place, cut, walk, span, panel, lanes, how, plain
                )
                begin = span[1]

    return multiply


multiply = make_multiply()
