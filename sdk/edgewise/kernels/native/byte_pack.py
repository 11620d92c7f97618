"""What products of bytes want of their weights beside the weights."""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, f32, i8, i32
from edgewise.kernels.native.neon import moved

LANES, QUAD = 16, 4


def centre_quads(args, begin, end, worker):
    """``-zero`` times the sum of each column; a task is a panel.

    What the target takes off unsigned bytes comes back here.  Words: quads, out (i32,
    by columns), quads of a column, zero point, whether bytes are unsigned, columns of
    a group, its panels.
    """
    count, columns, panels = args[2], args[5], args[6]
    zero = args[3] - (moved() if args[4] else 0)
    for number in range(begin, end):
        group, panel = number // panels, number % panels
        w = i8(args[0] + 64 * count * number)
        y = i32(args[1] + 4 * (group * columns + LANES * panel))
        for lane in range(min(LANES, columns - LANES * panel)):
            total = 0
            if zero != 0:
                for k in range(count):
                    for j in range(QUAD):
                        total += w[64 * k + QUAD * lane + j]
            y[lane] = np.int32(-zero * total)
    return OK


def centre_taps(args, begin, end, worker):
    """The same of ``[taps, C]``; a task is all.  Words: w, out, taps, zero point, C."""
    w, y, channels = i8(args[0]), i32(args[1]), args[4]
    for c in range(channels):
        total = 0
        for tap in range(args[2]):
            total += w[tap * channels + c]
        y[c] = np.int32(-args[3] * total)
    return OK


def real_taps(args, begin, end, worker):
    """Signed bytes as reals; a task is all.  Words: w, out, how many."""
    w, y = i8(args[0]), f32(args[1])
    for i in range(args[2]):
        y[i] = np.float32(w[i])
    return OK


EXPORTS = {
    "centre_quads": centre_quads,
    "centre_taps": centre_taps,
    "real_taps": real_taps,
}
