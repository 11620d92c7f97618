"""Weights that only a run knows, put in the order that kernels walk."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, f32
from edgewise.kernels.native.memory import load_part, store
from edgewise.kernels.native.offsets import offset_of

LANES = 16


def pack_panels_f32(args, begin, end, worker):
    """A task is one panel ``[K, 16]``; lanes past the last column are zeros.

    Words: source, panels, K, columns of a matrix, elements from column to column;
    the matrices as ``offset_of`` reads them; from word ``args[5]`` on, so the K rows.
    """
    k, columns, step, reduction, matrices = args[2], args[3], args[4], args[5], 6
    each = -(-columns // LANES)
    for panel in range(begin, end):
        column = panel % each * LANES
        lanes = min(columns - column, LANES)
        start = offset_of(args, matrices, 0, panel // each) + column * step
        target = args[1] + 64 * k * panel
        for row in range(k):
            source = args[0] + 4 * (start + offset_of(args, reduction, 0, row))
            if step == 1:
                store(target + 64 * row, load_part(source, lanes))
            else:
                x, y = f32(source), f32(target + 64 * row)
                for lane in range(LANES):
                    y[lane] = x[lane * step] if lane < lanes else 0.0
    return OK


def pack_taps_f32(args, begin, end, worker):
    """``[C, taps]`` to ``[taps, C]``; a task is one tap.  Words: w, out, C, taps."""
    x, y, channels, taps = f32(args[0]), f32(args[1]), args[2], args[3]
    for tap in range(begin, end):
        for c in range(channels):
            y[tap * channels + c] = x[c * taps + tap]
    return OK


EXPORTS = {"pack_panels_f32": pack_panels_f32, "pack_taps_f32": pack_taps_f32}
