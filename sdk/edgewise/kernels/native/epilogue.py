"""What happens to sums before they are stored: scale, shift, residual, activation.

The words of an epilogue, from word ``at`` on: address of the output, elements from row
to row of it, columns, addresses of scale, shift and residual (0 where absent), rows
after which the residual repeats, activation code (``ops.epilogue.Activation``), alpha
and beta as float bits; six that only sums of bytes have (``requantize``).
``kernels.catalog.epilogue`` makes them.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import as_f32, helper
from edgewise.kernels.native.activation import (
    elu,
    gelu,
    gelu_tanh,
    hard_sigmoid,
    hard_swish,
    leaky_relu,
    mish,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from edgewise.kernels.native.memory import load, load_part, store, store_part
from edgewise.kernels.native.vector import at_least, at_most, fma, splat
from edgewise.ops.epilogue import Activation

EPILOGUE_WORDS = 16
NONE, RELU, CLIP = map(int, (Activation.NONE, Activation.RELU, Activation.CLIP))
LEAKY_RELU, ELU = int(Activation.LEAKY_RELU), int(Activation.ELU)
HARD_SIGMOID, HARD_SWISH = int(Activation.HARD_SIGMOID), int(Activation.HARD_SWISH)
SIGMOID, SILU, TANH = map(int, (Activation.SIGMOID, Activation.SILU, Activation.TANH))
GELU, GELU_TANH = int(Activation.GELU), int(Activation.GELU_TANH)
SOFTPLUS, MISH = int(Activation.SOFTPLUS), int(Activation.MISH)


@helper
def activate(code, x, alpha, beta):
    """The activation that has a code beyond those of a range."""
    if code == LEAKY_RELU:
        return leaky_relu(x, alpha, beta)
    if code == ELU:
        return elu(x, alpha, beta)
    if code == HARD_SIGMOID:
        return hard_sigmoid(x, alpha, beta)
    if code == HARD_SWISH:
        return hard_swish(x)
    if code == SIGMOID:
        return sigmoid(x)
    if code == SILU:
        return silu(x)
    if code == TANH:
        return tanh(x)
    if code == GELU:
        return gelu(x)
    if code == GELU_TANH:
        return gelu_tanh(x)
    if code == SOFTPLUS:
        return softplus(x)
    return mish(x)


@helper
def bounds(args, at):
    """The range that the activation is, if it is one; else everything."""
    code = args[at + 7]
    low, high = np.float32(-np.inf), np.float32(np.inf)
    if code == RELU:
        low = np.float32(0.0)
    if code == CLIP:
        low, high = as_f32(args[at + 8]), as_f32(args[at + 9])
    return splat(low), splat(high)


@helper
def factors(args, at, column, lanes):
    """Scale and shift of ``lanes`` columns from ``column`` on; 1 and 0 where absent."""
    scale, shift = splat(1.0), splat(0.0)
    if args[at + 3] != 0:
        scale = load_part(args[at + 3] + 4 * column, lanes)
    if args[at + 4] != 0:
        shift = load_part(args[at + 4] + 4 * column, lanes)
    return scale, shift


@helper
def ending(args, at, column, lanes):
    """Scale, shift, lower and upper bound of ``lanes`` columns from ``column`` on."""
    scale, shift = factors(args, at, column, lanes)
    low, high = bounds(args, at)
    return scale, shift, low, high


@helper
def start(_end):
    """What sums begin with."""
    return splat(0.0)


@helper
def residual_row(args, at, row):
    """The row of the residual that belongs to a row of the output."""
    period = args[at + 6]
    return row if row < period else row % period


@helper
def is_plain(args, at, row, rows):
    """Whether rows can be stored from registers: a range, residual rows in order."""
    in_order = args[at + 5] == 0 or row + rows <= args[at + 6]
    return args[at + 7] <= CLIP and in_order


def _make_rows(rows: int):
    """Store so many whole rows one below the other, without or with a residual."""
    if rows == 0:

        @helper
        def nothing(y, x, step, sums, ending):
            return

        return nothing, nothing
    plain_before, plus_before = _make_rows(rows - 1)
    row = rows - 1

    @helper
    def plain(y, x, step, sums, ending):
        plain_before(y, x, step, sums, ending)
        scale, shift, low, high = ending
        total = fma(sums[row], scale, shift)
        store(y + row * step, at_most(at_least(total, low), high))

    @helper
    def plus(y, x, step, sums, ending):
        plus_before(y, x, step, sums, ending)
        scale, shift, low, high = ending
        total = fma(sums[row], scale, shift) + load(x + row * step)
        store(y + row * step, at_most(at_least(total, low), high))

    return plain, plus


def make_store_rows(rows: int):
    """``store_rows(args, at, row, column, sums, ending)``: whole rows that are plain.

    ``ending`` is (scale, shift, lower bound, upper bound).
    """
    plain, plus = _make_rows(rows)

    @helper
    def store_rows(args, at, row, column, sums, ending):
        step = 4 * args[at + 1]
        start = row * step + 4 * column
        if args[at + 5] == 0:
            plain(args[at] + start, 0, step, sums, ending)
        else:
            plus(args[at] + start, args[at + 5] + start, step, sums, ending)

    return store_rows


@helper
def store_line(args, at, row, column, rows, buffer, ending):
    """Store ``rows`` whole vectors of sums from ``buffer`` that are plain."""
    scale, shift, low, high = ending
    step = 4 * args[at + 1]
    start = row * step + 4 * column
    y, x = args[at] + start, args[at + 5] + start
    for i in range(rows):
        total = fma(load(buffer + 64 * i), scale, shift)
        if args[at + 5] != 0:
            total = total + load(x + step * i)
        store(y + step * i, at_most(at_least(total, low), high))


@helper
def store_buffer(args, at, row, column, rows, lanes, buffer, ending):
    """Store ``rows`` vectors of sums from ``buffer``: any activation, any lanes."""
    code = args[at + 7]
    alpha, beta = splat(as_f32(args[at + 8])), splat(as_f32(args[at + 9]))
    scale, shift, low, high = ending
    for i in range(rows):
        y = fma(load(buffer + 64 * i), scale, shift)
        if args[at + 5] != 0:
            place = residual_row(args, at, row + i) * args[at + 1] + column
            y = y + load_part(args[at + 5] + 4 * place, lanes)
        if code > CLIP:
            y = activate(code, y, alpha, beta)
        else:
            y = at_most(at_least(y, low), high)
        store_part(args[at] + 4 * ((row + i) * args[at + 1] + column), y, lanes)
