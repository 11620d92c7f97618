"""What happens to sums of bytes before they are stored.

The words are those of ``epilogue``, and six more: the inverse of the output's scale as
float bits, its zero point, what it is made of (``REAL``, ``UNSIGNED``, ``SIGNED``), the
residual's scale as float bits and its zero point, the address of what is added to the
sums of each column (0 where nothing is).  A residual is made of what the output is.
"""

from __future__ import annotations

import numpy as np
from numba.extending import intrinsic

from edgewise.kernels.native.abi import as_f32, helper
from edgewise.kernels.native.byte_activation import activate_bytes
from edgewise.kernels.native.epilogue import (
    CLIP,
    activate,
    bounds,
    factors,
    residual_row,
)
from edgewise.kernels.native.memory import (
    load,
    load_bytes,
    load_bytes_part,
    load_i32,
    load_part,
    load_part_i32,
    store_bytes,
    store_bytes_part,
    store_part,
)
from edgewise.kernels.native.product import Ending
from edgewise.kernels.native.vector import (
    at_least,
    at_most,
    bits,
    fma,
    from_i8,
    from_u8,
    i8x16,
    splat,
    splat_i32,
    to_bytes,
    to_f32,
)

REAL, UNSIGNED, SIGNED = range(3)
ROUNDER = np.float32(1.5 * 2**23)


@helper
def ending(args, at, column, lanes):
    """Of ``lanes`` columns from ``column`` on.

    What sums begin with, scale, shift, lower and upper bound; then for bytes the
    inverse of their scale, the bounds in steps of it, the zero point; the scale of the
    residual; the zero point in bytes.  Where the activation is a range all is in steps
    already, and the inverse is 1.
    """
    scale, shift = factors(args, at, column, lanes)
    low, high = bounds(args, at)
    centre = splat_i32(np.int32(0))
    if args[at + 15] != 0:
        centre = load_part_i32(args[at + 15] + 4 * column, lanes)
    inverse, zero = splat(as_f32(args[at + 10])), args[at + 11]
    least = np.float32(-128 - zero if args[at + 12] == SIGNED else -zero)
    bottom = at_least(low * inverse, splat(least))
    top = at_most(high * inverse, splat(least + np.float32(255.0)))
    added, whole = splat(as_f32(args[at + 13])), splat_i32(np.int32(zero))
    if args[at + 7] <= CLIP and args[at + 12] != REAL:
        scale, shift, added = scale * inverse, shift * inverse, added * inverse
        inverse = splat(1.0)
    bytes_ = to_bytes(whole)
    return centre, scale, shift, low, high, inverse, bottom, top, whole, added, bytes_


@helper
def start(end):
    """What sums begin with."""
    return end[0]


@intrinsic
def _moved(typing, x, zero):
    """Sums of bytes, which wrap around."""

    def generate(context, builder, _, args):
        return builder.add(*args)

    return i8x16(i8x16, i8x16), generate


@helper
def is_plain(args, at, row, rows):
    """Whether rows can be stored at once: bytes of a range, residual in order."""
    in_order = args[at + 5] == 0 or row + rows <= args[at + 6]
    return args[at + 7] <= CLIP and in_order and args[at + 12] != REAL


@helper
def _as_bytes(value, end):
    """Real numbers as bytes: nearest, ties to even; the zero point for NaN.

    Behind so large a number the last bit of a float stands for 1: adding it rounds.
    The low byte of its bits is 0, as is that of NaN's.
    """
    steps = at_most(at_least(value, end[6]), end[7])
    return _moved(to_bytes(bits(steps + splat(ROUNDER))), end[10])


@helper
def _residual(args, at, bytes_, scale):
    """What residual bytes stand for."""
    number = from_u8(bytes_) if args[at + 12] == UNSIGNED else from_i8(bytes_)
    moved = to_f32(number - splat_i32(np.int32(args[at + 14])))
    return moved * scale


def _make_rows(rows: int):
    """Store so many whole rows one below the other, without or with a residual."""
    if rows == 0:

        @helper
        def nothing(args, at, y, x, sums, end):
            return

        return nothing, nothing
    plain_before, plus_before = _make_rows(rows - 1)
    row = rows - 1

    @helper
    def plain(args, at, y, x, sums, end):
        plain_before(args, at, y, x, sums, end)
        total = fma(to_f32(sums[row]), end[1], end[2])
        store_bytes(y + row * args[at + 1], _as_bytes(total, end))

    @helper
    def plus(args, at, y, x, sums, end):
        plus_before(args, at, y, x, sums, end)
        step = row * args[at + 1]
        total = fma(to_f32(sums[row]), end[1], end[2])
        total = total + _residual(args, at, load_bytes(x + step), end[9])
        store_bytes(y + step, _as_bytes(total, end))

    return plain, plus


def make_store_rows(rows: int):
    """``store_rows(args, at, row, column, sums, end)``: whole rows that are plain."""
    plain, plus = _make_rows(rows)

    @helper
    def store_rows(args, at, row, column, sums, end):
        first = row * args[at + 1] + column
        if args[at + 5] == 0:
            plain(args, at, args[at] + first, 0, sums, end)
        else:
            plus(args, at, args[at] + first, args[at + 5] + first, sums, end)

    return store_rows


def make_store_buffer(read):
    """``store_buffer`` for sums that ``read`` makes real: any activation, any lanes."""

    @helper
    def store_buffer(args, at, row, column, rows, lanes, buffer, end):
        code, real = args[at + 7], args[at + 12] == REAL
        alpha, beta = splat(as_f32(args[at + 8])), splat(as_f32(args[at + 9]))
        for i in range(rows):
            y = fma(read(buffer + 64 * i, end[0]), end[1], end[2])
            if args[at + 5] != 0:
                place = residual_row(args, at, row + i) * args[at + 1] + column
                if real:
                    y = y + load_part(args[at + 5] + 4 * place, lanes)
                else:
                    bytes_ = load_bytes_part(args[at + 5] + place, lanes)
                    y = y + _residual(args, at, bytes_, end[9])
            if code > CLIP and real:
                y = activate(code, y, alpha, beta)
            elif code > CLIP:
                y = activate_bytes(code, y, alpha, beta)
            place = (row + i) * args[at + 1] + column
            if real:
                y = at_most(at_least(y, end[3]), end[4])
                store_part(args[at] + 4 * place, y, lanes)
            else:
                store_bytes_part(args[at] + place, _as_bytes(y * end[5], end), lanes)

    return store_buffer


@helper
def _whole(buffer, centre):
    return to_f32(load_i32(buffer))


@helper
def _real(buffer, centre):
    return load(buffer) + to_f32(centre)


store_reals = make_store_buffer(_real)
REQUANTIZED = Ending(
    ending, start, is_plain, make_store_rows, make_store_buffer(_whole)
)
