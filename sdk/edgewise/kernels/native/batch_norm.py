"""Batch norms in training: statistics of channels, and gradients through them.

Rows are cut into parts, each small enough to be read twice from the second cache, in a
way that depends on shapes only; parts are joined in order, in double precision.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native import scalar
from edgewise.kernels.native.abi import OK, as_f32, f32, helper
from edgewise.kernels.native.activation_grad import derivative
from edgewise.kernels.native.epilogue import CLIP, NONE, RELU, activate
from edgewise.kernels.native.memory import load_part, store_part
from edgewise.kernels.native.vector import (
    LANES,
    at_least,
    at_most,
    fma,
    select,
    splat,
)


def batch_moments_f32(args, begin, end, worker):
    """Of every part: means, what rounding left of them, sums of squared distances.

    Words: x, out, rows, rows a part, channels.  A task is a part; its three vectors lie
    one behind the other.
    """
    n, pitch = args[4], 4 * args[4]
    for part in range(begin, end):
        first = part * args[3]
        rows = min(args[3], args[2] - first)
        x, out = args[0] + first * pitch, args[1] + 3 * part * pitch
        count = splat(np.float32(rows))
        for c in range(0, n, 2 * LANES):
            at, rest = x + 4 * c, n - c
            more = max(rest - LANES, 0)
            a = b = splat(0.0)
            for i in range(rows):
                a = a + load_part(at + i * pitch, rest)
                b = b + load_part(at + i * pitch + 64, more)
            mean_a, mean_b = a / count, b / count
            a = b = qa = qb = splat(0.0)
            for i in range(rows):
                d = load_part(at + i * pitch, rest) - mean_a
                e = load_part(at + i * pitch + 64, more) - mean_b
                a, b = a + d, b + e
                qa, qb = fma(d, d, qa), fma(e, e, qb)
            low_a, low_b = a / count, b / count
            _store_moments(out + 4 * c, pitch, mean_a, low_a, qa - a * low_a, rest)
            _store_moments(out + 4 * c + 64, pitch, mean_b, low_b, qb - b * low_b, more)
    return OK


@helper
def _store_moments(out, pitch, mean, low, square, lanes):
    store_part(out, mean, lanes)
    store_part(out + pitch, low, lanes)
    store_part(out + 2 * pitch, square, lanes)


def batch_join_f32(args, begin, end, worker):
    """Mean and variance of all rows; the scale they make of gamma, if that is there.

    Words: moments of parts, mean, variance, gamma, scale, rows, rows a part, parts,
    channels, channels a task, eps.
    """
    n, rows, each, parts = args[8], args[5], args[6], args[7]
    mean, var, eps = f32(args[1]), f32(args[2]), np.float64(as_f32(args[10]))
    for c in range(begin * args[9], min(end * args[9], n)):
        total, spread = np.float64(0.0), np.float64(0.0)
        for part in range(parts):
            found = f32(args[0] + 4 * (3 * part * n + c))
            count = np.float64(min(each, rows - part * each))
            total += count * (np.float64(found[0]) + np.float64(found[n]))
        total /= np.float64(rows)
        for part in range(parts):
            found = f32(args[0] + 4 * (3 * part * n + c))
            count = np.float64(min(each, rows - part * each))
            far = np.float64(found[0]) + np.float64(found[n]) - total
            spread += np.float64(found[2 * n]) + count * far * far
        mean[c] = np.float32(total)
        var[c] = np.float32(spread / np.float64(rows))
        if args[3] != 0:
            root = scalar.root(np.float64(var[c]) + eps)
            f32(args[4])[c] = np.float32(np.float64(f32(args[3])[c]) / root)
    return OK


@helper
def _limits(code, alpha, beta):
    """The range that an activation is, if it is one; else everything."""
    low, high = np.float32(-np.inf), np.float32(np.inf)
    if code == RELU:
        low = np.float32(0.0)
    if code == CLIP:
        low, high = as_f32(alpha), as_f32(beta)
    return splat(low), splat(high)


def batch_apply_f32(args, begin, end, worker):
    """``activation((x - mean) * scale + shift + residual)``.

    Words: x, mean, scale, shift, residual or 0, out, rows, rows a task, channels,
    activation code, alpha and beta as bits.
    """
    n, code = args[8], args[9]
    alpha, beta = splat(as_f32(args[10])), splat(as_f32(args[11]))
    low, high = _limits(code, args[10], args[11])
    for i in range(begin * args[7], min(end * args[7], args[6])):
        for c in range(0, n, LANES):
            at, rest = 4 * (i * n + c), n - c
            v = load_part(args[0] + at, rest) - load_part(args[1] + 4 * c, rest)
            shift = load_part(args[3] + 4 * c, rest)
            v = fma(v, load_part(args[2] + 4 * c, rest), shift)
            if args[4] != 0:
                v = v + load_part(args[4] + at, rest)
            if code > CLIP:
                v = activate(code, v, alpha, beta)
            else:
                v = at_most(at_least(v, low), high)
            store_part(args[5] + at, v, rest)
    return OK


@helper
def _as_it_is(dy, given, how):
    return dy


@helper
def _in_range(dy, given, how):
    _, low, high = how
    inside = (given > low) & (given < high)
    return select(inside, dy, splat(0.0))


@helper
def _bent(dy, given, how):
    code, alpha, beta = how
    return dy * derivative(code, given, alpha, beta)


def _make_sums(through):
    """Sums over a part of gradients, and of them times distances from the mean."""

    @helper
    def sums(args, how, part, n):
        pitch, first = 4 * n, part * args[7]
        rows, start = min(args[7], args[6] - first), first * pitch
        dy, x, out = args[0] + start, args[1] + start, args[5] + 2 * part * pitch
        for c in range(0, n, LANES):
            rest = n - c
            mean = load_part(args[2] + 4 * c, rest)
            scale = load_part(args[3] + 4 * c, rest)
            shift = load_part(args[4] + 4 * c, rest)
            total, weighted = splat(0.0), splat(0.0)
            for i in range(rows):
                at = i * pitch + 4 * c
                d = load_part(x + at, rest) - mean
                grad = through(load_part(dy + at, rest), fma(d, scale, shift), how)
                total = total + grad
                weighted = fma(grad, d, weighted)
            store_part(out + 4 * c, total, rest)
            store_part(out + pitch + 4 * c, weighted, rest)

    return sums


_sums, _range_sums = _make_sums(_as_it_is), _make_sums(_in_range)
_bent_sums = _make_sums(_bent)


def batch_grad_sums_f32(args, begin, end, worker):
    """A task is a part.

    Words: dy, x, mean, scale, shift, out, rows, rows a part, channels, activation code,
    alpha and beta as bits.
    """
    code, n = args[9], args[8]
    low, high = _limits(code, args[10], args[11])
    alpha, beta = splat(as_f32(args[10])), splat(as_f32(args[11]))
    for part in range(begin, end):
        if code == NONE:
            _sums(args, (code, low, high), part, n)
        elif code <= CLIP:
            _range_sums(args, (code, low, high), part, n)
        else:
            _bent_sums(args, (code, alpha, beta), part, n)
    return OK


def batch_grad_join_f32(args, begin, end, worker):
    """Gradients of gamma and shift, and what makes that of x of a gradient.

    ``dx = (grad - level) * scale + (x - mean) * slope``.  Words: sums of parts, var,
    scale, dgamma, dshift, slope, level, rows, parts, channels, channels a task, eps.
    """
    n, rows, parts = args[9], np.float64(args[7]), args[8]
    var, scale, eps = f32(args[1]), f32(args[2]), np.float64(as_f32(args[11]))
    dgamma, dshift, slope, level = (
        f32(args[3]),
        f32(args[4]),
        f32(args[5]),
        f32(args[6]),
    )
    for c in range(begin * args[10], min(end * args[10], n)):
        total, weighted = np.float64(0.0), np.float64(0.0)
        for part in range(parts):
            found = f32(args[0] + 4 * (2 * part * n + c))
            total += np.float64(found[0])
            weighted += np.float64(found[n])
        square = np.float64(var[c]) + eps
        dgamma[c] = np.float32(weighted / scalar.root(square))
        dshift[c] = np.float32(total)
        level[c] = np.float32(total / rows)
        slope[c] = np.float32(-np.float64(scale[c]) / rows * weighted / square)
    return OK


def _make_back(through):
    """The gradient of a row of x."""

    @helper
    def back(args, how, row, n):
        for c in range(0, n, LANES):
            at, rest, here = 4 * (row * n + c), n - c, 4 * c
            d = load_part(args[1] + at, rest) - load_part(args[2] + here, rest)
            scale = load_part(args[3] + here, rest)
            given = fma(d, scale, load_part(args[4] + here, rest))
            grad = through(load_part(args[0] + at, rest), given, how)
            # The mean is taken off first: what is left of a few rows is small.
            grad = grad - load_part(args[6] + here, rest)
            along = d * load_part(args[5] + here, rest)
            store_part(args[7] + at, fma(grad, scale, along), rest)

    return back


_back, _range_back = _make_back(_as_it_is), _make_back(_in_range)
_bent_back = _make_back(_bent)


def batch_grad_apply_f32(args, begin, end, worker):
    """The gradient of x.

    Words: dy, x, mean, scale, shift, slope, level, out, rows, rows a task, channels,
    activation code, alpha and beta as bits.
    """
    code, n = args[11], args[10]
    low, high = _limits(code, args[12], args[13])
    alpha, beta = splat(as_f32(args[12])), splat(as_f32(args[13]))
    for row in range(begin * args[9], min(end * args[9], args[8])):
        if code == NONE:
            _back(args, (code, low, high), row, n)
        elif code <= CLIP:
            _range_back(args, (code, low, high), row, n)
        else:
            _bent_back(args, (code, alpha, beta), row, n)
    return OK


EXPORTS = {
    "batch_moments_f32": batch_moments_f32,
    "batch_join_f32": batch_join_f32,
    "batch_apply_f32": batch_apply_f32,
    "batch_grad_sums_f32": batch_grad_sums_f32,
    "batch_grad_join_f32": batch_grad_join_f32,
    "batch_grad_apply_f32": batch_grad_apply_f32,
}
