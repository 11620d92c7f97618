"""Recurrent steps of float32: GRU, LSTM and plain cells; ONNX's equations and gates.

The input's part of all gates of all steps is there before: ``given[D, T, N, G * H]``.
A task is four rows of the batch in one direction, through all steps: a row of the state
is the row of y that the step before wrote.  Recurrent weights are panels
``[D * P, H, 16]``.

Words: given, panels, bias (or absent), h0 (or absent), y, h, steps, batch, hidden,
directions, whether the first direction goes backwards, scratch, bytes of scratch a
worker, an option of the cell; of an LSTM also c0, c and peepholes.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.recurrent import BATCH, RELU, TANH
from edgewise.kernels.native import math
from edgewise.kernels.native.abi import OK, f32, helper
from edgewise.kernels.native.activation import sigmoid
from edgewise.kernels.native.memory import load, load_part, store, store_part
from edgewise.kernels.native.vector import at_least, fma, splat
from edgewise.kernels.native.walk import copy_bytes, quotient


@helper
def row_by_panel(x, panel, depth):
    """A row by a panel: four sums at once, so that none waits for the one before."""
    a0 = a1 = a2 = a3 = splat(0.0)
    v = f32(x)
    for k in range(0, depth - 3, 4):
        w = panel + 64 * k
        a0 = fma(splat(v[k]), load(w), a0)
        a1 = fma(splat(v[k + 1]), load(w + 64), a1)
        a2 = fma(splat(v[k + 2]), load(w + 128), a2)
        a3 = fma(splat(v[k + 3]), load(w + 192), a3)
    for k in range(depth & -4, depth):
        a0 = fma(splat(v[k]), load(panel + 64 * k), a0)
    return (a0 + a1) + (a2 + a3)


@helper
def products(x, step, rows, panels, first, end, depth, out, width):
    """Rows of x, ``step`` bytes apart, by panels ``[first, end)``; to ``out``."""
    for p in range(first, end):
        panel, to = panels + 64 * depth * p, out + 64 * p
        if rows == BATCH:
            a0 = a1 = a2 = a3 = splat(0.0)
            v0, v1, v2, v3 = f32(x), f32(x + step), f32(x + 2 * step), f32(x + 3 * step)
            for k in range(depth):
                w = load(panel + 64 * k)
                a0 = fma(splat(v0[k]), w, a0)
                a1 = fma(splat(v1[k]), w, a1)
                a2 = fma(splat(v2[k]), w, a2)
                a3 = fma(splat(v3[k]), w, a3)
            store(to, a0)
            store(to + width, a1)
            store(to + 2 * width, a2)
            store(to + 3 * width, a3)
        else:
            for i in range(rows):
                store(to + i * width, row_by_panel(x + i * step, panel, depth))


@helper
def part(address, j, n):
    """Lanes from element ``j`` on of ``n`` floats; zeros where there are none."""
    return load_part(address + 4 * j, n - j) if address != 0 else splat(0.0)


@helper
def gru_step(args, d, rows, given, x, step, y, work, state):
    """One step of a GRU; the option is whether the reset follows the product."""
    n, linear = args[8], args[13] != 0
    panel_count = quotient(3 * n + 15, 16)
    panels, width = args[1] + 64 * n * panel_count * d, 64 * panel_count
    line = 4 * (n + 15 & -16)
    update, reset = work + BATCH * width, work + BATCH * (width + line)
    bias = args[2] + 4 * (6 * n * d + 3 * n) if args[2] != 0 else np.int64(0)
    last = panel_count if linear else quotient(2 * n + 15, 16)
    products(x, step, rows, panels, 0, last, n, work, width)
    for i in range(rows):
        into, sums = given + 12 * n * i, work + width * i
        for j in range(0, n, 16):
            z = part(into, j, n) + load_part(sums + 4 * j, n - j)
            r = part(into + 4 * n, j, n) + load_part(sums + 4 * (n + j), n - j)
            if bias != 0:
                z, r = z + part(bias, j, n), r + part(bias + 4 * n, j, n)
            r = sigmoid(r)
            if not linear:
                r = r * load_part(x + step * i + 4 * j, n - j)
            store_part(update + line * i + 4 * j, sigmoid(z), n - j)
            store_part(reset + line * i + 4 * j, r, n - j)
    if not linear:
        first = quotient(2 * n, 16)
        products(reset, line, rows, panels, first, panel_count, n, work, width)
    for i in range(rows):
        into, sums = given + 12 * n * i + 8 * n, work + width * i + 8 * n
        for j in range(0, n, 16):
            fresh = load_part(sums + 4 * j, n - j)
            if bias != 0:
                fresh = fresh + part(bias + 8 * n, j, n)
            if linear:
                fresh = fresh * load_part(reset + line * i + 4 * j, n - j)
            fresh = math.tanh(part(into, j, n) + fresh)
            h = load_part(x + step * i + 4 * j, n - j)
            z = load_part(update + line * i + 4 * j, n - j)
            store_part(y + 4 * (n * i + j), fma(z, h - fresh, fresh), n - j)


@helper
def lstm_step(args, d, rows, given, x, step, y, work, state):
    """One step of an LSTM; the cell's state is updated where it is given back."""
    n = args[8]
    panel_count = quotient(4 * n + 15, 16)
    panels, width = args[1] + 64 * n * panel_count * d, 64 * panel_count
    bias = args[2] + 4 * (8 * n * d + 4 * n) if args[2] != 0 else np.int64(0)
    hole = args[16] + 12 * n * d if args[16] != 0 else np.int64(0)
    products(x, step, rows, panels, 0, panel_count, n, work, width)
    for i in range(rows):
        into, sums = given + 16 * n * i, work + width * i
        for j in range(0, n, 16):
            a = part(into, j, n) + part(sums, j, n)
            o = part(into + 4 * n, j, n) + part(sums + 4 * n, j, n)
            f = part(into + 8 * n, j, n) + part(sums + 8 * n, j, n)
            g = part(into + 12 * n, j, n) + part(sums + 12 * n, j, n)
            if bias != 0:
                a, o = a + part(bias, j, n), o + part(bias + 4 * n, j, n)
                f, g = f + part(bias + 8 * n, j, n), g + part(bias + 12 * n, j, n)
            c = load_part(state + 4 * (n * i + j), n - j)
            if hole != 0:
                a = fma(part(hole, j, n), c, a)
                f = fma(part(hole + 8 * n, j, n), c, f)
            c = fma(sigmoid(f), c, sigmoid(a) * math.tanh(g))
            if hole != 0:
                o = fma(part(hole + 4 * n, j, n), c, o)
            store_part(state + 4 * (n * i + j), c, n - j)
            store_part(y + 4 * (n * i + j), sigmoid(o) * math.tanh(c), n - j)


@helper
def rnn_step(args, d, rows, given, x, step, y, work, state):
    """One step of a plain cell; the option is its activation."""
    n, activation = args[8], args[13]
    panel_count = quotient(n + 15, 16)
    panels, width = args[1] + 64 * n * panel_count * d, 64 * panel_count
    bias = args[2] + 4 * (2 * n * d + n) if args[2] != 0 else np.int64(0)
    products(x, step, rows, panels, 0, panel_count, n, work, width)
    for i in range(rows):
        for j in range(0, n, 16):
            v = part(given + 4 * n * i, j, n) + part(work + width * i, j, n)
            if bias != 0:
                v = v + part(bias, j, n)
            if activation == TANH:
                v = math.tanh(v)
            else:
                v = at_least(v, splat(0.0)) if activation == RELU else sigmoid(v)
            store_part(y + 4 * (n * i + j), v, n - j)


@helper
def started(source, at, target, count):
    """Copy an initial state, or zeros where there is none."""
    if source != 0:
        copy_bytes(target, source + at, 4 * count)
    else:
        out = f32(target)
        for j in range(count):
            out[j] = np.float32(0.0)


def recurrent(cell, gates):
    """A kernel that takes ``cell`` through all steps."""

    def kernel(args, begin, end, worker):
        steps, batch, n, ways = args[6], args[7], args[8], args[9]
        blocks = quotient(batch + BATCH - 1, BATCH)
        work = args[11] + worker * args[12]
        first_state = work + args[12] - BATCH * 4 * (n + 15 & -16)
        for task in range(begin, min(end, ways * blocks)):
            d = quotient(task, blocks)
            row = (task - d * blocks) * BATCH
            rows = min(BATCH, batch - row)
            at = 4 * n * (d * batch + row)
            backwards = d == 1 or args[10] != 0
            x = first_state
            started(args[3], at, x, rows * n)
            state = np.int64(0)
            if gates == 4:
                state = args[15] + at
                started(args[14], at, state, rows * n)
            for k in range(steps):
                t = steps - 1 - k if backwards else k
                given = args[0] + 4 * gates * n * ((d * steps + t) * batch + row)
                y = args[4] + 4 * n * ((t * ways + d) * batch + row)
                cell(args, d, rows, given, x, 4 * n, y, work, state)
                x = y
            copy_bytes(args[5] + at, x, 4 * rows * n)
        return OK

    return kernel


EXPORTS = {
    "gru_f32": recurrent(gru_step, 3),
    "lstm_f32": recurrent(lstm_step, 4),
    "rnn_f32": recurrent(rnn_step, 1),
}
