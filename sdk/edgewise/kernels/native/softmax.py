"""Softmax and its logarithm over one axis, with the largest element taken off first."""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native import math
from edgewise.kernels.native.abi import OK, helper
from edgewise.kernels.native.memory import load, load_part, store, store_part
from edgewise.kernels.native.vector import (
    lane_index,
    max_lanes,
    maximum,
    select,
    splat,
    splat_i32,
    sum_lanes,
)


@helper
def first_lanes(v, n, rest):
    """The first ``n`` lanes of ``v``, the others from ``rest``."""
    return select(lane_index() < splat_i32(np.int32(n)), v, rest)


@helper
def largest(x, n):
    """The largest of ``n`` floats in a row; NaN where there is one."""
    top = splat(-np.inf)
    for j in range(0, n - 15, 16):
        top = maximum(top, load(x + 4 * j))
    j = n & -16
    if j < n:
        top = maximum(top, first_lanes(load_part(x + 4 * j, n - j), n - j, top))
    return splat(max_lanes(top))


@helper
def exponentials(x, y, n, top):
    """Write ``e ** (x - top)``; their sum."""
    total = splat(0.0)
    for j in range(0, n - 15, 16):
        e = math.exp(load(x + 4 * j) - top)
        store(y + 4 * j, e)
        total = total + e
    j = n & -16
    if j < n:
        e = math.exp(load_part(x + 4 * j, n - j) - top)
        store_part(y + 4 * j, e, n - j)
        total = total + first_lanes(e, n - j, splat(0.0))
    return splat(sum_lanes(total))


@helper
def sum_exponentials(x, n, top):
    """The sum of ``e ** (x - top)``."""
    total = splat(0.0)
    for j in range(0, n, 16):
        e = math.exp(load_part(x + 4 * j, n - j) - top)
        total = total + first_lanes(e, n - j, splat(0.0))
    return splat(sum_lanes(total))


def softmax_f32(args, begin, end, worker):
    """Over the last axis.  Words: x, y, rows, rows a task, size, whether logarithm."""
    n = args[4]
    for i in range(begin * args[3], min(end * args[3], args[2])):
        x, y = args[0] + 4 * i * n, args[1] + 4 * i * n
        top = largest(x, n)
        if args[5] != 0:
            shift = math.log(sum_exponentials(x, n, top))
            for j in range(0, n, 16):
                v = (load_part(x + 4 * j, n - j) - top) - shift
                store_part(y + 4 * j, v, n - j)
        else:
            factor = splat(1.0) / exponentials(x, y, n, top)
            for j in range(0, n, 16):
                store_part(y + 4 * j, load_part(y + 4 * j, n - j) * factor, n - j)
    return OK


@helper
def column(x, y, n, inner, lanes, logarithm):
    """Softmax down sixteen neighbouring columns of ``n`` elements, ``inner`` apart."""
    top = splat(-np.inf)
    for k in range(n):
        top = maximum(top, load_part(x + 4 * k * inner, lanes))
    total = splat(0.0)
    for k in range(n):
        e = math.exp(load_part(x + 4 * k * inner, lanes) - top)
        total = total + e
        if not logarithm:
            store_part(y + 4 * k * inner, e, lanes)
    if logarithm:
        shift = math.log(total)
        for k in range(n):
            v = (load_part(x + 4 * k * inner, lanes) - top) - shift
            store_part(y + 4 * k * inner, v, lanes)
    else:
        factor = splat(1.0) / total
        for k in range(n):
            v = load_part(y + 4 * k * inner, lanes) * factor
            store_part(y + 4 * k * inner, v, lanes)


def softmax_columns_f32(args, begin, end, worker):
    """Over an inner axis.

    Words: x, y, items, items a task, size of the axis, elements after it, items for
    each position before it, whether logarithm.  An item is sixteen columns.
    """
    n, inner = args[4], args[5]
    for item in range(begin * args[3], min(end * args[3], args[2])):
        outer = item // args[6]
        j = (item - outer * args[6]) * 16
        at = 4 * (outer * n * inner + j)
        column(args[0] + at, args[1] + at, n, inner, inner - j, args[7] != 0)
    return OK


EXPORTS = {"softmax_f32": softmax_f32, "softmax_columns_f32": softmax_columns_f32}
