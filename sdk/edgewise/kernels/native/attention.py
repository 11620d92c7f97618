"""Attention of float32: scores of some queries stay in cache from product to product.

Keys and values of every head are packed in panels first, once for all queries. A task
then makes the scores of a block of queries, normalises them, and multiplies them by the
values; q and y are read and written where they lie, whatever the order of their axes.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native import math
from edgewise.kernels.native.abi import OK, as_f32, f32, helper
from edgewise.kernels.native.memory import load, load_part, store, store_part
from edgewise.kernels.native.softmax import first_lanes, largest
from edgewise.kernels.native.tile import make_tile, make_zeros
from edgewise.kernels.native.vector import (
    at_least,
    max_lanes,
    splat,
    sum_lanes,
)
from edgewise.kernels.native.walk import quotient

ROWS, LANES = 6, 16
_tile, _zeros = make_tile(ROWS, 1), make_zeros(ROWS)


@helper
def _pack_keys(source, step, inner, first, last, keys, size, panels):
    """Keys ``[first, last)`` as columns of panels; columns beyond ``keys`` are zero."""
    for j in range(first, last):
        target = f32(panels + 4 * (size * (j & -LANES) + (j & LANES - 1)))
        if j < keys:
            row = f32(source + 4 * j * step)
            for i in range(size):
                target[LANES * i] = row[inner * i]
        else:
            for i in range(size):
                target[LANES * i] = np.float32(0.0)


@helper
def _pack_values(source, step, first, last, keys, size, panels):
    """Values of keys ``[first, last)`` as rows of panels."""
    for c in range(0, size, LANES):
        panel = panels + 4 * keys * c
        for j in range(first, min(last, keys)):
            v = load_part(source + 4 * (j * step + c), size - c)
            store(panel + 4 * LANES * j, v)


def attention_pack_f32(args, begin, end, worker):
    """A task is a block of keys of one head.

    Words: k, v, panels of both, keys, sizes d and e, heads, keys a task, blocks of
    keys, then elements from batch to batch, key to key and head to head, of k and v,
    and from number to number of a key.
    """
    keys, d, e, heads, per_task, blocks = (
        args[4],
        args[5],
        args[6],
        args[7],
        args[8],
        args[9],
    )
    panels = -(-keys // LANES) * LANES
    for task in range(begin, end):
        matrix = quotient(task, blocks)
        first = (task - matrix * blocks) * per_task
        last = min(first + per_task, panels)
        n = quotient(matrix, heads)
        h = matrix - n * heads
        k = args[0] + 4 * (n * args[10] + h * args[12])
        v = args[1] + 4 * (n * args[13] + h * args[15])
        to = args[2] + 4 * matrix * panels * d
        _pack_keys(k, args[11], args[16], first, last, keys, d, to)
        to = args[3] + 4 * matrix * keys * (-(-e // LANES) * LANES)
        _pack_values(v, args[14], first, last, keys, e, to)
    return OK


@helper
def _addresses(base, step, first, rows):
    """Six rows from ``first`` on; past the last row, the last again."""
    last = rows - 1
    return (
        base + step * min(first, last),
        base + step * min(first + 1, last),
        base + step * min(first + 2, last),
        base + step * min(first + 3, last),
        base + step * min(first + 4, last),
        base + step * min(first + 5, last),
    )


@helper
def _scores(q, step, rows, panels, keys, d, out, width):
    """Products of ``rows`` queries with all keys; rows of ``out`` in sixes."""
    for p in range(0, keys, LANES):
        panel = panels + 4 * d * p
        for i in range(0, rows, ROWS):
            sums = _tile(d, _addresses(q, step, i, rows), panel, 0, _zeros())
            to = out + width * i + 4 * p
            store(to, sums[0])
            store(to + width, sums[1])
            store(to + 2 * width, sums[2])
            store(to + 3 * width, sums[3])
            store(to + 4 * width, sums[4])
            store(to + 5 * width, sums[5])


@helper
def _largest(row, n):
    """The largest of ``n`` scores that are numbers."""
    top = splat(-np.inf)
    for j in range(0, n - LANES + 1, LANES):
        top = at_least(top, load(row + 4 * j))
    j = n & -LANES
    if j < n:
        top = at_least(top, first_lanes(load(row + 4 * j), n - j, top))
    return max_lanes(top)


@helper
def _mask(row, n, scale, mask, step):
    """Scale ``n`` scores and add their mask, which may be the same for all of them."""
    for j in range(0, n, LANES):
        s = load(row + 4 * j) * scale
        if step != 0:
            s = s + load_part(mask + 4 * j, n - j)
        elif mask != 0:
            s = s + splat(f32(mask)[0])
        store(row + 4 * j, s)


@helper
def _shares(row, n, top, factor, keys):
    """``2 ** ((score - top) * factor)`` of ``n`` scores, to a sum of 1; then zeros."""
    top, factor, total = splat(top), splat(factor), splat(0.0)
    for j in range(0, n - LANES + 1, LANES):
        e = math.exp2_of_negative((load(row + 4 * j) - top) * factor)
        store(row + 4 * j, e)
        total = total + e
    j = n & -LANES
    if j < n:
        e = math.exp2_of_negative((load(row + 4 * j) - top) * factor)
        e = first_lanes(e, n - j, splat(0.0))
        store(row + 4 * j, e)
        total = total + e
    share = splat(np.float32(1.0) / sum_lanes(total))
    for j in range(0, n, LANES):
        store(row + 4 * j, load(row + 4 * j) * share)
    _fill(row, n + LANES - 1 & -LANES, keys, splat(0.0))


@helper
def _softmax(row, n, scale, mask, step, keys, guarded):
    """The first ``n`` of ``keys`` scores of a query as shares of 1."""
    if mask != 0 or not scale > np.float32(0.0):
        _mask(row, n, splat(scale), mask, step)
        scale = np.float32(1.0)
    top = _largest(row, n)
    if top > np.float32(-np.inf):
        _shares(row, n, top, scale * math.LOG2_E, keys)
    else:
        # Nothing to see: 0 / 0, unless that is wanted to be 0 and no score is NaN.
        nothing = splat(np.float32(np.nan))
        if guarded and max_lanes(largest(row, n)) == np.float32(-np.inf):
            nothing = splat(0.0)
        _fill(row, 0, keys, nothing)


@helper
def _fill(row, first, keys, value):
    for j in range(first, keys, LANES):
        store(row + 4 * j, value)


@helper
def _products(args, shares, width, rows, panels, y, step):
    """Shares times values, to rows of y ``step`` bytes apart."""
    keys, e = args[6], args[8]
    for c in range(0, e, LANES):
        panel, lanes = panels + 4 * keys * c, e - c
        for i in range(0, rows, ROWS):
            base = _addresses(shares, width, i, rows)
            sums = _tile(keys, base, panel, 0, _zeros())
            to = y + 4 * c + step * i
            store_part(to, sums[0], lanes)
            if i + 1 < rows:
                store_part(to + step, sums[1], lanes)
            if i + 2 < rows:
                store_part(to + 2 * step, sums[2], lanes)
            if i + 3 < rows:
                store_part(to + 3 * step, sums[3], lanes)
            if i + 4 < rows:
                store_part(to + 4 * step, sums[4], lanes)
            if i + 5 < rows:
                store_part(to + 5 * step, sums[5], lanes)


def attention_f32(args, begin, end, worker):
    """A task is a block of queries of one head.

    Words: q, panels of keys, panels of values, y, mask (or absent), queries, keys,
    sizes d and e, heads, heads that share keys, queries a task, blocks of queries;
    from 13 on elements from batch to batch, query to query, head to head of q and of y;
    from 19 on the same of the mask, and from key to key; then scale, scratch, bytes of
    scratch a worker, bytes from row to row in it, whether causal, the place of the
    first query, whether rows without keys give zeros.
    """
    queries, keys, d, e = args[5], args[6], args[7], args[8]
    heads, group, per_task, blocks = args[9], args[10], args[11], args[12]
    scale, width, work = as_f32(args[23]), args[26], args[24] + args[25] * worker
    few = quotient(heads, group)
    padded = -(-keys // LANES) * LANES
    for task in range(begin, end):
        matrix = quotient(task, blocks)
        first = (task - matrix * blocks) * per_task
        rows = min(per_task, queries - first)
        n = quotient(matrix, heads)
        h = matrix - n * heads
        shared = n * few + quotient(h, group)
        q = args[0] + 4 * (n * args[13] + first * args[14] + h * args[15])
        panels = args[1] + 4 * shared * padded * d
        _scores(q, 4 * args[14], rows, panels, keys, d, work, width)
        for i in range(rows):
            mask, seen = args[4], keys
            if mask != 0:
                mask += 4 * (n * args[19] + (first + i) * args[20] + h * args[21])
            if args[27] != 0:
                seen = max(min(keys, args[28] + first + i + 1), 0)
            row = work + width * i
            _softmax(row, seen, scale, mask, args[22], keys, args[29] != 0)
        values = args[2] + 4 * shared * keys * (-(-e // LANES) * LANES)
        y = args[3] + 4 * (n * args[16] + first * args[17] + h * args[18])
        _products(args, work, width, rows, values, y, 4 * args[17])
    return OK


EXPORTS = {
    "attention_pack_f32": attention_pack_f32,
    "attention_f32": attention_f32,
}
