"""Sums and their kin over any axes of float32: along rows, or down columns.

A row is what lies contiguous among the reduced axes; where the last axis is kept,
sixteen columns are reduced together.  Partial results are joined in an order that
depends on shapes only.  Sums are cut into blocks, so that errors do not grow with
length but with the number of blocks.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.reduce import LOG, MEAN, ROOT
from edgewise.kernels.native import math
from edgewise.kernels.native.abi import OK, as_f32, helper
from edgewise.kernels.native.memory import load, load_part, store_part
from edgewise.kernels.native.softmax import first_lanes
from edgewise.kernels.native.vector import (
    absolute,
    fma,
    max_lanes,
    maximum,
    min_lanes,
    minimum,
    product_lanes,
    select,
    splat,
    sqrt,
    sum_lanes,
)
from edgewise.kernels.native.walk import offset_1, quotient

BLOCK = 1024  # elements of a row that are summed before they join the total
DEPTH = 64  # elements of a column likewise


@helper
def finished(v, post, divisor):
    """The last step of a reduction."""
    if post == MEAN:
        return v / divisor
    if post == ROOT:
        return sqrt(v)
    return math.log(v) if post == LOG else v


@helper
def plus(total, v):
    """The sum."""
    return total + v


@helper
def plus_size(total, v):
    """The sum of absolute values."""
    return total + absolute(v)


@helper
def plus_square(total, v):
    """The sum of squares."""
    return fma(v, v, total)


@helper
def times(total, v):
    """The product."""
    return total * v


@helper
def larger(total, v):
    """The larger; NaN where either is."""
    return maximum(total, v)


@helper
def smaller(total, v):
    """The smaller; NaN where either is."""
    return minimum(total, v)


def rows(take, join, fold, start):
    """A kernel for rows.

    Words: x, y, items, items a task, parts a row, elements a part, elements a row,
    rows an output, last step, divisor; then rank, sizes and strides of the kept axes,
    and the same of the other reduced axes.  An item is a part of an output.
    """

    @helper
    def run(x, n, total):
        for b in range(0, n, BLOCK):
            stop = min(b + BLOCK, n)
            a0 = a1 = a2 = a3 = splat(start)
            for j in range(b, stop - 63, 64):
                a0 = take(a0, load(x + 4 * j))
                a1 = take(a1, load(x + 4 * j + 64))
                a2 = take(a2, load(x + 4 * j + 128))
                a3 = take(a3, load(x + 4 * j + 192))
            for j in range(b + ((stop - b) & -64), stop, 16):
                part = take(a0, load_part(x + 4 * j, stop - j))
                a0 = first_lanes(part, min(stop - j, 16), a0)
            total = join(total, join(join(a0, a1), join(a2, a3)))
        return total

    def kernel(args, begin, end, worker):
        parts, length, n, runs = args[4], args[5], args[6], args[7]
        others = 11 + 2 * args[10]
        for item in range(begin * args[3], min(end * args[3], args[2])):
            output = quotient(item, parts)
            first = (item - output * parts) * length
            x = args[0] + 4 * (offset_1(args, 10, output) + first)
            total = splat(start)
            for i in range(runs):
                row = x + 4 * offset_1(args, others, i)
                total = run(row, min(length, n - first), total)
            last = finished(splat(fold(total)), args[8], splat(as_f32(args[9])))
            store_part(args[1] + 4 * item, last, 1)
        return OK

    return kernel


def columns(take, join, start):
    """A kernel for columns.

    Words: x, y, items, items a task, parts a column, elements a part, elements a
    column, columns a row, items a part of a row, last step, divisor; then rank, sizes
    and strides of the kept axes but the last, and of the reduced ones.  An item is
    sixteen columns; parts of y follow each other.
    """

    def kernel(args, begin, end, worker):
        length, n, inner, chunks = args[5], args[6], args[7], args[8]
        parts, reduced = args[4], 12 + 2 * args[11]
        each = quotient(args[2], parts)
        for item in range(begin * args[3], min(end * args[3], args[2])):
            part = quotient(item, each)
            row = quotient(item - part * each, chunks)
            j = (item - part * each - row * chunks) * 16
            x = args[0] + 4 * (offset_1(args, 11, row) + j)
            total, first = splat(start), part * length
            for b in range(first, min(first + length, n), DEPTH):
                block = splat(start)
                for k in range(b, min(b + DEPTH, first + length, n)):
                    at = x + 4 * offset_1(args, reduced, k)
                    block = take(block, load_part(at, inner - j))
                total = join(total, block)
            last = finished(total, args[9], splat(as_f32(args[10])))
            place = (part * quotient(each, chunks) + row) * inner + j
            store_part(args[1] + 4 * place, last, inner - j)
        return OK

    return kernel


@helper
def base(peak):
    """What exponentials are moved by: the peak, or nothing where it is infinite."""
    finite = absolute(peak) <= splat(3.4028235e38)
    return select(finite, peak, splat(0.0))


def log_sum_exp_rows(args, begin, end, worker):
    """Words as of ``rows``, in one part."""
    n, runs, others = args[6], args[7], 11 + 2 * args[10]
    for item in range(begin * args[3], min(end * args[3], args[2])):
        x = args[0] + 4 * offset_1(args, 10, item)
        peak = splat(-np.inf)
        for i in range(runs):
            row = x + 4 * offset_1(args, others, i)
            for j in range(0, n, 16):
                v = load_part(row + 4 * j, n - j)
                peak = maximum(peak, first_lanes(v, min(n - j, 16), peak))
        low, total = base(splat(max_lanes(peak))), splat(0.0)
        for i in range(runs):
            row = x + 4 * offset_1(args, others, i)
            for j in range(0, n, 16):
                e = math.exp(load_part(row + 4 * j, n - j) - low)
                total = total + first_lanes(e, min(n - j, 16), splat(0.0))
        y = low + math.log(splat(sum_lanes(total)))
        store_part(args[1] + 4 * item, y, 1)
    return OK


def log_sum_exp_columns(args, begin, end, worker):
    """Words as of ``columns``, in one part."""
    n, inner, chunks, reduced = args[6], args[7], args[8], 12 + 2 * args[11]
    for item in range(begin * args[3], min(end * args[3], args[2])):
        row = quotient(item, chunks)
        j = (item - row * chunks) * 16
        x = args[0] + 4 * (offset_1(args, 11, row) + j)
        peak = splat(-np.inf)
        for k in range(n):
            at = x + 4 * offset_1(args, reduced, k)
            peak = maximum(peak, load_part(at, inner - j))
        low, total = base(peak), splat(0.0)
        for k in range(n):
            at = x + 4 * offset_1(args, reduced, k)
            total = total + math.exp(load_part(at, inner - j) - low)
        y = low + math.log(total)
        store_part(args[1] + 4 * (row * inner + j), y, inner - j)
    return OK


@helper
def sum_all(v):
    """The sum of all lanes."""
    return sum_lanes(v)


@helper
def max_all(v):
    """The largest lane."""
    return max_lanes(v)


@helper
def min_all(v):
    """The smallest lane."""
    return min_lanes(v)


@helper
def product_all(v):
    """The product of all lanes."""
    return product_lanes(v)


EXPORTS = {
    "reduce_sum_rows_f32": rows(plus, plus, sum_all, 0.0),
    "reduce_l1_rows_f32": rows(plus_size, plus, sum_all, 0.0),
    "reduce_square_rows_f32": rows(plus_square, plus, sum_all, 0.0),
    "reduce_prod_rows_f32": rows(times, times, product_all, 1.0),
    "reduce_max_rows_f32": rows(larger, larger, max_all, -np.inf),
    "reduce_min_rows_f32": rows(smaller, smaller, min_all, np.inf),
    "reduce_sum_columns_f32": columns(plus, plus, 0.0),
    "reduce_l1_columns_f32": columns(plus_size, plus, 0.0),
    "reduce_square_columns_f32": columns(plus_square, plus, 0.0),
    "reduce_prod_columns_f32": columns(times, times, 1.0),
    "reduce_max_columns_f32": columns(larger, larger, -np.inf),
    "reduce_min_columns_f32": columns(smaller, smaller, np.inf),
    "log_sum_exp_rows_f32": log_sum_exp_rows,
    "log_sum_exp_columns_f32": log_sum_exp_columns,
}
