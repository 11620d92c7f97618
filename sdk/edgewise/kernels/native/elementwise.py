"""Elementwise float32 kernels: sixteen lanes at a time, in place where x and y are one.

Words of a unary kernel: x, y, size, elements a task, then its parameters.  Words of a
binary one: a, b, y, then a walk over a and b.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.elementwise import CODED_F32, POWER_F32
from edgewise.kernels.native import angle, math, scalar, vector
from edgewise.kernels.native.abi import OK, as_f32, f32, helper, u8
from edgewise.kernels.native.memory import load, load_part, store, store_part
from edgewise.kernels.native.vector import at_least, at_most, select, splat
from edgewise.kernels.native.walk import end_item, first_item, offset_2, row_span


def unary(body):
    """A kernel that applies ``body(v)`` to all elements."""

    def kernel(args, begin, end, worker):
        x, y = args[0], args[1]
        start, stop = begin * args[3], min(end * args[3], args[2])
        whole = stop - 15
        for i in range(start, whole, 16):
            store(y + 4 * i, body(load(x + 4 * i)))
        i = start + ((stop - start) & -16)
        if i < stop:
            n = stop - i
            store_part(y + 4 * i, body(load_part(x + 4 * i, n)), n)
        return OK

    return kernel


def unary_with(body):
    """A kernel that applies ``body(v, p, q)``, with two float parameters."""

    def kernel(args, begin, end, worker):
        x, y = args[0], args[1]
        p, q = splat(as_f32(args[4])), splat(as_f32(args[5]))
        start, stop = begin * args[3], min(end * args[3], args[2])
        whole = stop - 15
        for i in range(start, whole, 16):
            store(y + 4 * i, body(load(x + 4 * i), p, q))
        i = start + ((stop - start) & -16)
        if i < stop:
            n = stop - i
            store_part(y + 4 * i, body(load_part(x + 4 * i, n), p, q), n)
        return OK

    return kernel


def binary(body):
    """A kernel that applies ``body(v, w)``; either side may be one number a row."""

    @helper
    def row(a, b, y, step_a, step_b, count):
        left, right = splat(f32(a)[0]), splat(f32(b)[0])
        whole = count - 15
        if step_a == 0 and step_b == 0:
            for j in range(0, count, 16):
                store_part(y + 4 * j, body(left, right), count - j)
            return
        if step_b == 0:
            for j in range(0, whole, 16):
                store(y + 4 * j, body(load(a + 4 * j), right))
        elif step_a == 0:
            for j in range(0, whole, 16):
                store(y + 4 * j, body(left, load(b + 4 * j)))
        else:
            for j in range(0, whole, 16):
                store(y + 4 * j, body(load(a + 4 * j), load(b + 4 * j)))
        j = count & -16
        if j < count:
            n = count - j
            if step_a != 0:
                left = load_part(a + 4 * j, n)
            if step_b != 0:
                right = load_part(b + 4 * j, n)
            store_part(y + 4 * j, body(left, right), n)

    def kernel(args, begin, end, worker):
        a, b, y = args[0], args[1], args[2]
        step_a, step_b, inner = args[9], args[10], args[7]
        for item in range(first_item(args, 3, begin), end_item(args, 3, end)):
            i, start, count = row_span(args, 3, item)
            at_a, at_b = offset_2(args, 3, i)
            row(
                a + 4 * (at_a + start * step_a),
                b + 4 * (at_b + start * step_b),
                y + 4 * (i * inner + start),
                step_a,
                step_b,
                count,
            )
        return OK

    return kernel


@helper
def negated(v):
    """-v."""
    return -v


@helper
def reciprocal(v):
    """``1 / v``."""
    return splat(1.0) / v


@helper
def sign(v):
    """-1, 0 or 1; NaN stays."""
    one = select(v > splat(0.0), splat(1.0), v)
    return select(v < splat(0.0), splat(-1.0), one)


@helper
def clip(v, low, high):
    """``v`` between two numbers, the upper one last."""
    return at_most(at_least(v, low), high)


@helper
def add(v, w):
    """``v + w``."""
    return v + w


@helper
def sub(v, w):
    """``v - w``."""
    return v - w


@helper
def mul(v, w):
    """``v * w``."""
    return v * w


@helper
def div(v, w):
    """``v / w``."""
    return v / w


@helper
def prelu(v, w):
    """``v`` where it is not negative, else w * v."""
    return select(v < splat(0.0), v * w, v)


# Intrinsics of Numba cannot be closed over by a kernel; helpers can.
@helper
def absolute(v):
    """|v|."""
    return vector.absolute(v)


@helper
def sqrt(v):
    """The root; NaN for what is negative."""
    return vector.sqrt(v)


@helper
def floor(v):
    """The next whole number down."""
    return vector.floor(v)


@helper
def ceil(v):
    """The next whole number up."""
    return vector.ceil(v)


@helper
def rint(v):
    """The nearest whole number, ties to even."""
    return vector.rint(v)


@helper
def minimum(v, w):
    """The smaller; NaN where either is."""
    return vector.minimum(v, w)


@helper
def maximum(v, w):
    """The larger; NaN where either is."""
    return vector.maximum(v, w)


SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, ASINH, ACOSH, ATANH = range(len(CODED_F32))


@helper
def coded(code, x):
    """The rare function that ``code`` names."""
    if code == SIN:
        return angle.sin(x)
    if code == COS:
        return angle.cos(x)
    if code == TAN:
        return angle.tan(x)
    if code == ASIN:
        return angle.asin(x)
    if code == ACOS:
        return angle.acos(x)
    if code == ATAN:
        return angle.atan(x)
    if code == SINH:
        return angle.sinh(x)
    if code == COSH:
        return angle.cosh(x)
    if code == ASINH:
        return angle.asinh(x)
    if code == ACOSH:
        return angle.acosh(x)
    return angle.atanh(x)


def coded_f32(args, begin, end, worker):
    """A rare function, by the code in word 4."""
    x, y, code = f32(args[0]), f32(args[1]), args[4]
    for i in range(begin * args[3], min(end * args[3], args[2])):
        y[i] = np.float32(coded(code, np.float64(x[i])))
    return OK


def test_f32(args, begin, end, worker):
    """Infinite, of the signs in words 5 and 6, or with word 4 NaN: a byte of 0 or 1."""
    x, y = f32(args[0]), u8(args[1])
    nan, above, below = args[4] != 0, args[5] != 0, args[6] != 0
    for i in range(begin * args[3], min(end * args[3], args[2])):
        v = x[i]
        upper, lower = v > np.float32(3.4028235e38), v < np.float32(-3.4028235e38)
        y[i] = (nan & (v != v)) | (above & upper) | (below & lower)
    return OK


POW, MOD, FMOD = range(len(POWER_F32))


@helper
def power(code, a, b):
    """``a ** b``, or a remainder of ``a / b``."""
    if code == POW:
        return scalar.power(a, b)
    return scalar.remainder(a, b, code == MOD)


def power_f32(args, begin, end, worker):
    """``a ** b`` and remainders, by the code in word 3; walks from word 4."""
    step_a, step_b, inner = args[10], args[11], args[8]
    for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
        i, start, count = row_span(args, 4, item)
        at_a, at_b = offset_2(args, 4, i)
        a, b = f32(args[0] + 4 * at_a), f32(args[1] + 4 * at_b)
        y = f32(args[2] + 4 * i * inner)
        for j in range(start, start + count):
            left, right = np.float64(a[j * step_a]), np.float64(b[j * step_b])
            y[j] = np.float32(power(args[3], left, right))
    return OK


EXPORTS = {
    "neg_f32": unary(negated),
    "abs_f32": unary(absolute),
    "sqrt_f32": unary(sqrt),
    "reciprocal_f32": unary(reciprocal),
    "exp_f32": unary(math.exp),
    "log_f32": unary(math.log),
    "erf_f32": unary(math.erf),
    "sign_f32": unary(sign),
    "floor_f32": unary(floor),
    "ceil_f32": unary(ceil),
    "round_f32": unary(rint),
    "clip_f32": unary_with(clip),
    "add_f32": binary(add),
    "sub_f32": binary(sub),
    "mul_f32": binary(mul),
    "div_f32": binary(div),
    "minimum_f32": binary(minimum),
    "maximum_f32": binary(maximum),
    "prelu_f32": binary(prelu),
    "coded_f32": coded_f32,
    "test_f32": test_f32,
    "power_f32": power_f32,
}
