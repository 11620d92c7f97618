"""Arithmetic of whole numbers and bools, comparisons, ``where``: index work, by codes.

Values are widened to 64 bits and cut back on writing, so that all sizes wrap around.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.elementwise import BINARY_INTEGER, COMPARE, UNARY_INTEGER
from edgewise.kernels.native.abi import (
    DIVISION_BY_ZERO,
    OK,
    f32,
    helper,
    i8,
    i16,
    i32,
    i64,
    u8,
)
from edgewise.kernels.native.walk import (
    end_item,
    first_item,
    offset_2,
    offset_3,
    row_span,
)

NEG, ABS, SIGN, BITWISE_NOT, NOT = range(len(UNARY_INTEGER))
(
    ADD, SUB, MUL, DIV, MOD, FMOD, MINIMUM, MAXIMUM, AND, OR, XOR, LEFT, RIGHT,
) = range(len(BINARY_INTEGER))  # fmt: skip
# Which of less, equal and greater a comparison accepts, by code.
ACCEPTS_LESS = tuple("less" in name for name in COMPARE)
ACCEPTS_EQUAL = tuple("equal" in name for name in COMPARE)
ACCEPTS_GREATER = tuple("greater" in name for name in COMPARE)


@helper
def one(code, x):
    """The operation of one number that ``code`` names."""
    if code == NEG:
        return -x
    if code == ABS:
        return -x if x < 0 else x
    if code == SIGN:
        return np.int64(x > 0) - np.int64(x < 0)
    if code == BITWISE_NOT:
        return ~x
    return np.int64(x == 0)


@helper
def two(code, x, y):
    """The operation of two numbers that ``code`` names, divisions left out."""
    if code == ADD:
        return x + y
    if code == SUB:
        return x - y
    if code == MUL:
        return x * y
    if code == MINIMUM:
        return min(x, y)
    if code == MAXIMUM:
        return max(x, y)
    if code == AND:
        return x & y
    if code == OR:
        return x | y
    if code == XOR:
        return x ^ y
    outside = y < 0 or y > 63  # a shift the processor does not define
    if code == LEFT:
        return np.int64(0) if outside else x << y
    return (x >> np.int64(63)) if outside else x >> y


@helper
def divided(code, x, y):
    """Quotient towards zero, or a remainder, for ``y`` other than zero."""
    if y == -1:  # the least number has no opposite: the processor would trap
        return -x if code == DIV else np.int64(0)
    floored = x // y
    rest = x - floored * y  # of the sign of y
    toward_zero = rest != 0 and (x < 0) != (y < 0)
    if code == DIV:
        return floored + 1 if toward_zero else floored
    if code == FMOD:
        return rest - y if toward_zero else rest
    return rest


def unary(pointer):
    """A kernel over a flat tensor, by the code in word 4."""

    def kernel(args, begin, end, worker):
        x, y, code = pointer(args[0]), pointer(args[1]), args[4]
        for i in range(begin * args[3], min(end * args[3], args[2])):
            y[i] = one(code, np.int64(x[i]))
        return OK

    return kernel


@helper
def quotients(code, a, step_a, b, step_b, y, count):
    """A row of divisions; a status where one is by zero."""
    for j in range(count):
        divisor = np.int64(b[j * step_b])
        if divisor == 0:
            return DIVISION_BY_ZERO
        y[j] = divided(code, np.int64(a[j * step_a]), divisor)
    return OK


def binary(pointer, size):
    """A kernel that broadcasts, by the code in word 3; walks from word 4."""

    def kernel(args, begin, end, worker):
        code, step_a, step_b, inner = args[3], args[10], args[11], args[8]
        for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
            i, start, count = row_span(args, 4, item)
            at_a, at_b = offset_2(args, 4, i)
            a = pointer(args[0] + size * (at_a + start * step_a))
            b = pointer(args[1] + size * (at_b + start * step_b))
            y = pointer(args[2] + size * (i * inner + start))
            if code in (DIV, MOD, FMOD):
                status = quotients(code, a, step_a, b, step_b, y, count)
                if status != OK:
                    return status
            # Loops over plain neighbours become vectors.
            elif step_a == 1 and step_b == 1:
                for j in range(count):
                    y[j] = two(code, np.int64(a[j]), np.int64(b[j]))
            elif step_a == 1 and step_b == 0:
                w = np.int64(b[0])
                for j in range(count):
                    y[j] = two(code, np.int64(a[j]), w)
            else:
                for j in range(count):
                    y[j] = two(code, np.int64(a[j * step_a]), np.int64(b[j * step_b]))
        return OK

    return kernel


@helper
def accepted(less, equal, greater, v, w):
    """Whether a comparison holds: a byte, without a branch."""
    return (less & (v < w)) | (equal & (v == w)) | (greater & (v > w))


def compare(pointer, size):
    """A kernel that gives bytes of 0 or 1, by the code in word 3; walks from word 4."""

    def kernel(args, begin, end, worker):
        code, step_a, step_b, inner = args[3], args[10], args[11], args[8]
        less, equal = ACCEPTS_LESS[code], ACCEPTS_EQUAL[code]
        more = ACCEPTS_GREATER[code]
        for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
            i, start, count = row_span(args, 4, item)
            at_a, at_b = offset_2(args, 4, i)
            a = pointer(args[0] + size * (at_a + start * step_a))
            b = pointer(args[1] + size * (at_b + start * step_b))
            y = u8(args[2] + i * inner + start)
            if step_a == 1 and step_b == 1:
                for j in range(count):
                    y[j] = accepted(less, equal, more, a[j], b[j])
            elif step_a == 1 and step_b == 0:
                w = b[0]
                for j in range(count):
                    y[j] = accepted(less, equal, more, a[j], w)
            else:
                for j in range(count):
                    y[j] = accepted(less, equal, more, a[j * step_a], b[j * step_b])
        return OK

    return kernel


def where(pointer, size):
    """A kernel that picks by a byte; walks over condition, a, b from word 4."""

    def kernel(args, begin, end, worker):
        step_c, step_a, step_b, inner = args[10], args[11], args[12], args[8]
        for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
            i, start, count = row_span(args, 4, item)
            at_c, at_a, at_b = offset_3(args, 4, i)
            c = u8(args[0] + at_c + start * step_c)
            a = pointer(args[1] + size * (at_a + start * step_a))
            b = pointer(args[2] + size * (at_b + start * step_b))
            y = pointer(args[3] + size * (i * inner + start))
            if step_c == 1 and step_a == 1 and step_b == 1:
                for j in range(count):
                    v, w = a[j], b[j]
                    y[j] = v if c[j] != 0 else w
            elif step_c == 1 and step_a == 1 and step_b == 0:
                w = b[0]
                for j in range(count):
                    v = a[j]
                    y[j] = v if c[j] != 0 else w
            else:
                for j in range(count):
                    v, w = a[j * step_a], b[j * step_b]
                    y[j] = v if c[j * step_c] != 0 else w
        return OK

    return kernel


EXPORTS = {
    "unary_i64": unary(i64),
    "unary_i32": unary(i32),
    "unary_i8": unary(i8),
    "unary_u8": unary(u8),
    "binary_i64": binary(i64, 8),
    "binary_i32": binary(i32, 4),
    "binary_i8": binary(i8, 1),
    "binary_u8": binary(u8, 1),
    "compare_f32": compare(f32, 4),
    "compare_i64": compare(i64, 8),
    "compare_i32": compare(i32, 4),
    "compare_i8": compare(i8, 1),
    "compare_u8": compare(u8, 1),
    "where_1": where(u8, 1),
    "where_2": where(i16, 2),
    "where_4": where(i32, 4),
    "where_8": where(i64, 8),
}
