"""The way back through recurrent steps of float32: GRU, LSTM and plain cells.

A task is four rows of the batch in one direction, through all steps, the last first.
What steps made is found again: the gates of a GRU step by step, those of an LSTM and
its cells on a way forwards before.  Gradients go to the state before by weights that
were turned, panels ``[D * Q, G * H, 16]``.

Words: given, panels, bias (or absent), h0 (or absent), y, dy, dh, steps, batch, hidden,
directions, whether the first direction goes backwards, scratch, bytes of scratch a
worker, turned weights, gradients of given and of the state's part, before, fed, dh0,
an option of the cell; of an LSTM also c0, dc, dc0, the peepholes' zeros, cells.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.recurrent import BATCH, RELU, TANH
from edgewise.kernels.native import math
from edgewise.kernels.native.abi import OK, f32, helper
from edgewise.kernels.native.activation import sigmoid
from edgewise.kernels.native.memory import load_part, store_part
from edgewise.kernels.native.recurrent import part, products, started
from edgewise.kernels.native.vector import select, splat
from edgewise.kernels.native.walk import copy_bytes, quotient


def turn(args, begin, end, worker):
    """Panels ``[P, H, 16]`` of G * H columns as panels ``[Q, G * H, 16]`` of H."""
    n, width, ways = args[2], args[3], args[4]
    wide, high = quotient(width + 15, 16), quotient(n + 15, 16)
    for task in range(begin, min(end, ways * high)):
        d = quotient(task, high)
        first = 16 * (task - d * high)
        source = f32(args[0] + 64 * n * wide * d)
        out = f32(args[1] + 64 * width * task)
        for c in range(width):
            at = 16 * n * quotient(c, 16) + (c & 15)
            for lane in range(16):
                k = first + lane
                out[16 * c + lane] = source[at + 16 * k] if k < n else np.float32(0.0)
    return OK


@helper
def sent_back(args, d, rows, grads, width, work, dh, added):
    """Gradients of gates by turned weights, to dh: added to it, or in its place."""
    n = args[9]
    count = quotient(n + 15, 16)
    turned = args[14] + 64 * width * count * d
    products(grads, 4 * width, rows, turned, 0, count, width, work, 64 * count)
    for i in range(rows):
        for j in range(0, n, 16):
            v = load_part(work + 64 * count * i + 4 * j, n - j)
            to = dh + 4 * (n * i + j)
            if added:
                v = v + load_part(to, n - j)
            store_part(to, v, n - j)


@helper
def gru_back(args, d, rows, at, x, work, dh, dc, before):
    """One step of a GRU whose reset follows the product."""
    n = args[9]
    count = quotient(3 * n + 15, 16)
    panels, width = args[1] + 64 * n * count * d, 64 * count
    bias = args[2] + 4 * (6 * n * d + 3 * n) if args[2] != 0 else np.int64(0)
    products(x, 4 * n, rows, panels, 0, count, n, work, width)
    one = splat(1.0)
    for i in range(rows):
        row, sums = at + i, work + width * i
        given, own = args[0] + 12 * n * row, args[15] + 12 * n * row
        loop = args[16] + 12 * n * row
        for j in range(0, n, 16):
            z = part(given, j, n) + part(sums, j, n)
            r = part(given + 4 * n, j, n) + part(sums + 4 * n, j, n)
            hidden = part(sums + 8 * n, j, n)
            if bias != 0:
                z, r = z + part(bias, j, n), r + part(bias + 4 * n, j, n)
                hidden = hidden + part(bias + 8 * n, j, n)
            z, r = sigmoid(z), sigmoid(r)
            fresh = math.tanh(part(given + 8 * n, j, n) + r * hidden)
            total = part(dh + 4 * n * i, j, n) + part(args[5] + 4 * n * row, j, n)
            inner = total * (one - z) * (one - fresh * fresh)
            h = part(x + 4 * n * i, j, n)
            update = total * (h - fresh) * z * (one - z)
            reset = inner * hidden * r * (one - r)
            store_part(dh + 4 * (n * i + j), total * z, n - j)
            store_part(own + 4 * j, update, n - j)
            store_part(own + 4 * (n + j), reset, n - j)
            store_part(own + 4 * (2 * n + j), inner, n - j)
            store_part(loop + 4 * j, update, n - j)
            store_part(loop + 4 * (n + j), reset, n - j)
            store_part(loop + 4 * (2 * n + j), inner * r, n - j)
            store_part(args[18] + 4 * (n * row + j), h, n - j)
    sent_back(args, d, rows, args[16] + 12 * n * at, 3 * n, work, dh, True)


@helper
def lstm_forth(args, d, rows, at, x, work, before):
    """One step of an LSTM forwards: what goes into its gates, and its cells."""
    n = args[9]
    count = quotient(4 * n + 15, 16)
    panels, width = args[1] + 64 * n * count * d, 64 * count
    bias = args[2] + 4 * (8 * n * d + 4 * n) if args[2] != 0 else np.int64(0)
    products(x, 4 * n, rows, panels, 0, count, n, work, width)
    for i in range(rows):
        row, sums = at + i, work + width * i
        given, own = args[0] + 16 * n * row, args[15] + 16 * n * row
        for j in range(0, 4 * n, 16):
            v = part(given, j, 4 * n) + load_part(sums + 4 * j, 4 * n - j)
            if bias != 0:
                v = v + part(bias, j, 4 * n)
            store_part(own + 4 * j, v, 4 * n - j)
        for j in range(0, n, 16):
            take = sigmoid(part(own, j, n)) * math.tanh(part(own + 12 * n, j, n))
            kept = sigmoid(part(own + 8 * n, j, n)) * part(before + 4 * n * i, j, n)
            store_part(args[25] + 4 * (n * row + j), kept + take, n - j)


@helper
def lstm_back(args, d, rows, at, x, work, dh, dc, before):
    """One step of an LSTM; the gates' sums give way to their gradients."""
    n, one = args[9], splat(1.0)
    for i in range(rows):
        row = at + i
        own = args[15] + 16 * n * row
        for j in range(0, n, 16):
            take, out = sigmoid(part(own, j, n)), sigmoid(part(own + 4 * n, j, n))
            keep = sigmoid(part(own + 8 * n, j, n))
            new = math.tanh(part(own + 12 * n, j, n))
            seen = math.tanh(part(args[25] + 4 * n * row, j, n))
            total = part(dh + 4 * n * i, j, n) + part(args[5] + 4 * n * row, j, n)
            inner = part(dc + 4 * n * i, j, n) + total * out * (one - seen * seen)
            earlier = part(before + 4 * n * i, j, n)
            store_part(own + 4 * j, inner * new * take * (one - take), n - j)
            store_part(own + 4 * (n + j), total * seen * out * (one - out), n - j)
            forget = inner * earlier * keep * (one - keep)
            store_part(own + 4 * (2 * n + j), forget, n - j)
            store_part(own + 4 * (3 * n + j), inner * take * (one - new * new), n - j)
            store_part(dc + 4 * (n * i + j), inner * keep, n - j)
    sent_back(args, d, rows, args[15] + 16 * n * at, 4 * n, work, dh, False)


@helper
def rnn_back(args, d, rows, at, x, work, dh, dc, before):
    """One step of a plain cell, whose result tells the slope of its activation."""
    n, activation = args[9], args[20]
    one, zero = splat(1.0), splat(0.0)
    for i in range(rows):
        row = at + i
        for j in range(0, n, 16):
            y = part(args[4] + 4 * n * row, j, n)
            if activation == TANH:
                slope = one - y * y
            else:
                slope = select(y > zero, one, zero)
                if activation != RELU:
                    slope = y * (one - y)
            total = part(dh + 4 * n * i, j, n) + part(args[5] + 4 * n * row, j, n)
            store_part(args[15] + 4 * (n * row + j), total * slope, n - j)
    sent_back(args, d, rows, args[15] + 4 * n * at, n, work, dh, False)


@helper
def forwards(args, d, row, rows, backwards, first, cell, work):
    """An LSTM's way forwards; the rows of states and of cells that steps begin with."""
    steps, batch, n, ways = args[7], args[8], args[9], args[10]
    x, before = first, cell
    for k in range(steps):
        t = steps - 1 - k if backwards else k
        at = (t * ways + d) * batch + row
        lstm_forth(args, d, rows, at, x, work, before)
        x, before = args[4] + 4 * n * at, args[25] + 4 * n * at


def way_back(cell, gates):
    """A kernel that takes ``cell`` back through all steps."""

    def kernel(args, begin, end, worker):
        steps, batch, n, ways = args[7], args[8], args[9], args[10]
        blocks = quotient(batch + BATCH - 1, BATCH)
        work = args[12] + worker * args[13]
        line = BATCH * 4 * (n + 15 & -16)
        first = work + args[13] - line
        start = first - line  # the first cells
        for task in range(begin, min(end, ways * blocks)):
            d = quotient(task, blocks)
            row = (task - d * blocks) * BATCH
            rows = min(BATCH, batch - row)
            own = 4 * n * (d * batch + row)
            backwards = d == 1 or args[11] != 0
            started(args[3], own, first, rows * n)
            dh, dc = args[19] + own, np.int64(0)
            copy_bytes(dh, args[6] + own, 4 * rows * n)
            if gates == 4:
                started(args[21], own, start, rows * n)
                forwards(args, d, row, rows, backwards, first, start, work)
                dc = args[23] + own
                copy_bytes(dc, args[22] + own, 4 * rows * n)
                if row == 0:
                    started(0, 0, args[24] + 12 * n * d, 3 * n)
            for k in range(steps):
                t = k if backwards else steps - 1 - k
                at = (t * ways + d) * batch + row
                earlier = ((t + 1 if backwards else t - 1) * ways + d) * batch + row
                x, before = first, start
                if k < steps - 1:
                    x = args[4] + 4 * n * earlier
                    if gates == 4:
                        before = args[25] + 4 * n * earlier
                cell(args, d, rows, at, x, work, dh, dc, before)
                copy_bytes(args[17] + 4 * n * at, x, 4 * rows * n)
        return OK

    return kernel


EXPORTS = {
    "recurrent_turn_f32": turn,
    "gru_grad_f32": way_back(gru_back, 3),
    "lstm_grad_f32": way_back(lstm_back, 4),
    "rnn_grad_f32": way_back(rnn_back, 1),
}
