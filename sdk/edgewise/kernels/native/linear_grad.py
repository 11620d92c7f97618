"""Gradients of a few rows of a product with packed weights: weights are read once."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, f32, helper
from edgewise.kernels.native.memory import load, load_part
from edgewise.kernels.native.vector import LANES, fma, sum_lanes

AT_ONCE = 4  # panels whose part of dy is kept in registers


@helper
def _part(args, dy, panel):
    """Sixteen columns of a row of dy; zeros beside them, and beyond the last panel."""
    return load_part(dy + 64 * panel, max(args[5] - panel * LANES, 0))


@helper
def _add_panels(args, row, panel, first, last):
    """Add what four panels give to some numbers of a row."""
    k, last_panel = args[4], -(-args[5] // LANES) - 1
    dy, out = args[0] + 4 * row * args[5], f32(args[2] + 4 * row * k)
    a, b = _part(args, dy, panel), _part(args, dy, panel + 1)
    c, d = _part(args, dy, panel + 2), _part(args, dy, panel + 3)
    size, w = 64 * k, args[1]
    w_a, w_b = w + size * panel, w + size * min(panel + 1, last_panel)
    w_c = w + size * min(panel + 2, last_panel)
    w_d = w + size * min(panel + 3, last_panel)
    for i in range(first, last):
        at = 64 * i
        total = fma(load(w_b + at), b, load(w_a + at) * a)
        more = fma(load(w_d + at), d, load(w_c + at) * c)
        found = sum_lanes(total + more)
        out[i] = found if panel == 0 else out[i] + found


def linear_input_grad_f32(args, begin, end, worker):
    """A task is some numbers of all rows.

    Words: dy, panels, out, rows, numbers of a row, columns of dy, numbers a task.
    """
    for task in range(begin, end):
        first = task * args[6]
        last = min(first + args[6], args[4])
        for panel in range(0, -(-args[5] // LANES), AT_ONCE):
            for row in range(args[3]):
                _add_panels(args, row, panel, first, last)
    return OK


EXPORTS = {"linear_input_grad_f32": linear_input_grad_f32}
