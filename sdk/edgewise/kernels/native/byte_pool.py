"""Means of bytes over windows of channels-last images; sums are exact.

Words: x, y, rows of y in all, rows a task, H, W, C, output H, output W, kernel,
strides, top and left pads, dilations (two words each), whether the border counts; then
channels a task, pieces of so many channels, what means are times as float bits, zero
points of x and y, the least byte.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, as_f32, helper
from edgewise.kernels.native.memory import load_bytes, load_bytes_part, store_bytes_part
from edgewise.kernels.native.pool import end_tap, first_tap
from edgewise.kernels.native.quantize import whole_bytes
from edgewise.kernels.native.vector import (
    LANES,
    from_i8,
    from_u8,
    splat,
    splat_i32,
    to_f32,
)
from edgewise.kernels.native.walk import quotient

WIDE = 4 * LANES


def _make_sums(widen):
    """Bytes of a window added up: of up to sixteen channels, and of four times as many.

    Its rows lie ``across`` bytes apart, ``lines`` of them; its taps ``pixels``.
    """

    @helper
    def narrow(x, lines, across, pixels, taps, lanes):
        total = splat_i32(np.int32(0))
        for r in range(lines):
            for s in range(taps):
                at = x + r * across + s * pixels
                total = total + widen(load_bytes_part(at, lanes))
        return total

    @helper
    def wide(x, lines, across, pixels, taps):
        a = b = c = d = splat_i32(np.int32(0))
        for r in range(lines):
            for s in range(taps):
                at = x + r * across + s * pixels
                a = a + widen(load_bytes(at))
                b = b + widen(load_bytes(at + LANES))
                c = c + widen(load_bytes(at + 2 * LANES))
                d = d + widen(load_bytes(at + 3 * LANES))
        return a, b, c, d

    return narrow, wide


@helper
def _factors(args, inside):
    """Of a window with so many taps inside the image: what ``_store`` is given."""
    count = args[9] * args[10] if args[17] != 0 else max(inside, 1)
    by = splat(as_f32(args[20]) / np.float32(count))
    off = splat_i32(np.int32(inside * args[21]))
    bottom = np.float32(args[23] - args[22])
    least, most = splat(bottom), splat(bottom + np.float32(255.0))
    return by, off, least, most, splat_i32(np.int32(args[22]))


@helper
def _store(y, total, lanes, factors):
    by, off, least, most, zero = factors
    v = to_f32(total - off) * by
    store_bytes_part(y, whole_bytes(v, least, most, zero), lanes)


def average(widen):
    """A kernel for means."""
    narrow, wide = _make_sums(widen)

    @helper
    def window(args, x, y, lines, taps, channels):
        across, pixels = args[15] * args[5] * args[6], args[16] * args[6]
        factors, c = _factors(args, lines * taps), 0
        while c + WIDE <= channels:
            totals = wide(x + c, lines, across, pixels, taps)
            _store(y + c, totals[0], LANES, factors)
            _store(y + c + LANES, totals[1], LANES, factors)
            _store(y + c + 2 * LANES, totals[2], LANES, factors)
            _store(y + c + 3 * LANES, totals[3], LANES, factors)
            c += WIDE
        while c < channels:
            total = narrow(x + c, lines, across, pixels, taps, channels - c)
            _store(y + c, total, channels - c, factors)
            c += LANES

    def kernel(args, begin, end, worker):
        height, width, channels = args[4], args[5], args[6]
        for number in range(begin, end):
            task = quotient(number, args[19])
            first = (number - task * args[19]) * args[18]
            count = min(args[18], channels - first)
            for row in range(task * args[3], min((task + 1) * args[3], args[2])):
                n = quotient(row, args[7])
                y = (row - n * args[7]) * args[11] - args[13]
                r0 = first_tap(y, args[15])
                lines = max(end_tap(y, args[15], args[9], height) - r0, 0)
                line = args[0] + (n * height + y + r0 * args[15]) * width * channels
                for i in range(args[8]):
                    x = i * args[12] - args[14]
                    s0 = first_tap(x, args[16])
                    taps = max(end_tap(x, args[16], args[10], width) - s0, 0)
                    at = line + (x + s0 * args[16]) * channels + first
                    to = args[1] + (row * args[8] + i) * channels + first
                    window(args, at, to, lines, taps, count)
        return OK

    return kernel


EXPORTS = {
    "byte_average_pool_u8": average(from_u8),
    "byte_average_pool_i8": average(from_i8),
}
