"""Normalisations of float32, in two passes: mean first, then what differs from it."""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native import math, scalar
from edgewise.kernels.native.abi import OK, as_f32, f32, helper
from edgewise.kernels.native.memory import load, load_part, store_part
from edgewise.kernels.native.softmax import first_lanes
from edgewise.kernels.native.vector import fma, splat, sum_lanes
from edgewise.kernels.native.walk import quotient

BLOCK = 1024  # elements that are summed before they join the total
# A unit in which the squares of the largest floats have a sum.
SMALL_UNIT = 2.0**-70


@helper
def row_sum(x, n):
    """The sum of ``n`` floats in a row."""
    total = splat(0.0)
    for b in range(0, n, BLOCK):
        stop, a0, a1 = min(b + BLOCK, n), splat(0.0), splat(0.0)
        for j in range(b, stop - 31, 32):
            a0 = a0 + load(x + 4 * j)
            a1 = a1 + load(x + 4 * j + 64)
        for j in range(b + ((stop - b) & -32), stop, 16):
            a0 = a0 + load_part(x + 4 * j, stop - j)
        total = total + (a0 + a1)
    return sum_lanes(total)


@helper
def row_spread(x, n, mean, unit):
    """Sums of the distances from ``mean`` times ``unit``, and of their squares."""
    sums, squares = splat(0.0), splat(0.0)
    for b in range(0, n, BLOCK):
        stop, a, q = min(b + BLOCK, n), splat(0.0), splat(0.0)
        for j in range(b, stop - 15, 16):
            d = (load(x + 4 * j) - mean) * unit
            a = a + d
            q = fma(d, d, q)
        j = b + ((stop - b) & -16)
        if j < stop:
            d = (load_part(x + 4 * j, stop - j) - mean) * unit
            d = first_lanes(d, stop - j, splat(0.0))
            a = a + d
            q = fma(d, d, q)
        sums, squares = sums + a, squares + q
    return sum_lanes(sums), sum_lanes(squares)


def layer_norm_f32(args, begin, end, worker):
    """Rows of mean 0 and variance 1, or of mean square 1, scaled and shifted.

    Words: x, scale, shift, y, rows, rows a task, elements a row, eps, whether the mean
    is taken off.  Scale and shift may be absent.
    """
    scale, shift, n = args[1], args[2], args[6]
    count, eps = np.float32(n), np.float64(as_f32(args[7]))
    for i in range(begin * args[5], min(end * args[5], args[4])):
        x, y = args[0] + 4 * i * n, args[3] + 4 * i * n
        mean, rest, unit = splat(0.0), np.float64(0.0), np.float64(1.0)
        if args[8] != 0:
            mean = splat(row_sum(x, n) / count)
        sums, squares = row_spread(x, n, mean, splat(1.0))
        if not squares <= np.float32(3.4028235e38):
            unit = np.float64(SMALL_UNIT)
            sums, squares = row_spread(x, n, mean, splat(SMALL_UNIT))
        if args[8] != 0:
            # What rounding left in the mean: without it values far from 0 lose digits.
            rest = np.float64(sums) / (count * unit)
        variance = np.float64(squares) / (count * unit * unit) - rest * rest
        factor = splat(np.float32(1.0 / scalar.root(variance + eps)))
        back = splat(np.float32(rest))
        for j in range(0, n, 16):
            v = ((load_part(x + 4 * j, n - j) - mean) - back) * factor
            if scale != 0:
                v = v * load_part(scale + 4 * j, n - j)
            if shift != 0:
                v = v + load_part(shift + 4 * j, n - j)
            store_part(y + 4 * j, v, n - j)
    return OK


def scale_shift_f32(args, begin, end, worker):
    """Vectors over the last axis.

    Words: x, scale, shift, y, rows, rows a task, elements a row, rows that share a
    scale and a shift.  Either may be absent.
    """
    n, shared = args[6], args[7]
    for i in range(begin * args[5], min(end * args[5], args[4])):
        x, y = args[0] + 4 * i * n, args[3] + 4 * i * n
        at = 4 * n * quotient(i, shared)
        for j in range(0, n, 16):
            v = load_part(x + 4 * j, n - j)
            if args[1] != 0 and args[2] != 0:
                factor = load_part(args[1] + at + 4 * j, n - j)
                v = fma(v, factor, load_part(args[2] + at + 4 * j, n - j))
            elif args[1] != 0:
                v = v * load_part(args[1] + at + 4 * j, n - j)
            elif args[2] != 0:
                v = v + load_part(args[2] + at + 4 * j, n - j)
            store_part(y + 4 * j, v, n - j)
    return OK


def scale_shift_planes_f32(args, begin, end, worker):
    """One scale and shift for each row.

    Words: x, scale, shift, y, rows, rows a task, elements a row, scales in all.
    """
    n, count = args[6], args[7]
    for i in range(begin * args[5], min(end * args[5], args[4])):
        x, y = args[0] + 4 * i * n, args[3] + 4 * i * n
        c = i - quotient(i, count) * count
        factor, offset = splat(1.0), splat(0.0)
        if args[1] != 0:
            factor = splat(f32(args[1])[c])
        if args[2] != 0:
            offset = splat(f32(args[2])[c])
        for j in range(0, n, 16):
            v = fma(load_part(x + 4 * j, n - j), factor, offset)
            store_part(y + 4 * j, v, n - j)
    return OK


def batch_norm_fold_f32(args, begin, end, worker):
    """A normalisation as scale and shift.

    Words: gamma, beta, mean, var, bias (or absent), scale, shift, size, elements a
    task, eps.
    """
    gamma, beta, mean, var = f32(args[0]), f32(args[1]), f32(args[2]), f32(args[3])
    bias, scale, shift = f32(args[4]), f32(args[5]), f32(args[6])
    eps = np.float64(as_f32(args[9]))
    for c in range(begin * args[8], min(end * args[8], args[7])):
        factor = np.float64(gamma[c]) / scalar.root(np.float64(var[c]) + eps)
        offset = -np.float64(mean[c])
        if args[4] != 0:
            offset += np.float64(bias[c])
        scale[c] = np.float32(factor)
        shift[c] = np.float32(np.float64(beta[c]) + offset * factor)
    return OK


def moments_f32(args, begin, end, worker):
    """Means and sums of squared distances of all channels of every image.

    Words: x, means, squares, items, items a task, places an image, channels, items an
    image.  An item is sixteen channels of an image.
    """
    places, channels, chunks = args[5], args[6], args[7]
    count = splat(np.float32(places))
    for item in range(begin * args[4], min(end * args[4], args[3])):
        n = quotient(item, chunks)
        c = (item - n * chunks) * 16
        x, rest = args[0] + 4 * (n * places * channels + c), channels - c
        total = splat(0.0)
        for b in range(0, places, 64):
            part = splat(0.0)
            for k in range(b, min(b + 64, places)):
                part = part + load_part(x + 4 * k * channels, rest)
            total = total + part
        mean = total / count
        sums, squares = splat(0.0), splat(0.0)
        for b in range(0, places, 64):
            a, q = splat(0.0), splat(0.0)
            for k in range(b, min(b + 64, places)):
                d = load_part(x + 4 * k * channels, rest) - mean
                a = a + d
                q = fma(d, d, q)
            sums, squares = sums + a, squares + q
        rest_of_mean = sums / count
        at = 4 * (n * channels + c)
        # Means keep what rounding left of them: the two parts lie one after the other.
        store_part(args[1] + 2 * 4 * n * channels + 4 * c, mean, rest)
        low = args[1] + 2 * 4 * n * channels + 4 * (channels + c)
        store_part(low, rest_of_mean, rest)
        store_part(args[2] + at, squares - sums * rest_of_mean, rest)
    return OK


def group_fold_f32(args, begin, end, worker):
    """Scale and shift of every image from the moments of its channels.

    Words: means, squares, gamma, beta, scales, shifts, images, channels, groups,
    places an image, eps.  A task is an image.
    """
    channels, groups = args[7], args[8]
    gamma, beta, places = f32(args[2]), f32(args[3]), np.float64(args[9])
    width, eps = quotient(channels, groups), np.float64(as_f32(args[10]))
    for n in range(begin, min(end, args[6])):
        high = f32(args[0] + 8 * n * channels)
        low = f32(args[0] + 8 * n * channels + 4 * channels)
        squares = f32(args[1] + 4 * n * channels)
        scale, shift = f32(args[4] + 4 * n * channels), f32(args[5] + 8 * n * channels)
        for first in range(0, channels, width):
            mean, spread = np.float64(0.0), np.float64(0.0)
            for c in range(first, first + width):
                mean += np.float64(high[c]) + np.float64(low[c])
            mean /= width
            for c in range(first, first + width):
                distance = np.float64(high[c]) + np.float64(low[c]) - mean
                spread += np.float64(squares[c]) + places * distance * distance
            root = scalar.root(spread / (places * width) + eps)
            for c in range(first, first + width):
                factor = np.float64(gamma[c]) / root
                scale[c] = np.float32(factor)
                # The mean is taken off first: its product would lose the digits that
                # values far from zero have in common.
                shift[c] = np.float32(mean)
                shift[channels + c] = np.float32(
                    np.float64(beta[c]) + (np.float64(shift[c]) - mean) * factor
                )
    return OK


def group_apply_f32(args, begin, end, worker):
    """``(x - mean) * scale + shift``.

    Words: x, scales, means and shifts, y, rows, rows a task, channels, rows an image.
    """
    n, shared = args[6], args[7]
    for i in range(begin * args[5], min(end * args[5], args[4])):
        x, y = args[0] + 4 * i * n, args[3] + 4 * i * n
        image = quotient(i, shared)
        scale, mean = args[1] + 4 * n * image, args[2] + 8 * n * image
        for j in range(0, n, 16):
            at, rest = 4 * j, n - j
            v = load_part(x + at, rest) - load_part(mean + at, rest)
            shift = load_part(mean + 4 * n + at, rest)
            store_part(y + at, fma(v, load_part(scale + at, rest), shift), rest)
    return OK


def lrn_f32(args, begin, end, worker):
    """Words: x, y, rows, rows a task, channels, size, alpha / size, beta, bias."""
    n, size = args[4], args[5]
    alpha, beta, bias = as_f32(args[6]), splat(as_f32(args[7])), as_f32(args[8])
    before = (size - 1) // 2
    for i in range(begin * args[3], min(end * args[3], args[2])):
        x, y = f32(args[0] + 4 * i * n), f32(args[1] + 4 * i * n)
        for c in range(n):
            near = np.float32(0.0)
            for k in range(max(c - before, 0), min(c - before + size, n)):
                near += x[k] * x[k]
            y[c] = bias + alpha * near
        for c in range(0, n, 16):
            at, rest = 4 * (i * n + c), n - c
            power = math.exp(-(beta * math.log(load_part(args[1] + at, rest))))
            store_part(args[1] + at, load_part(args[0] + at, rest) * power, rest)
    return OK


EXPORTS = {
    "layer_norm_f32": layer_norm_f32,
    "scale_shift_f32": scale_shift_f32,
    "scale_shift_planes_f32": scale_shift_planes_f32,
    "batch_norm_fold_f32": batch_norm_fold_f32,
    "moments_f32": moments_f32,
    "group_fold_f32": group_fold_f32,
    "group_apply_f32": group_apply_f32,
    "lrn_f32": lrn_f32,
}
