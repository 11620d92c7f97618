"""Along one axis, one number at a time: extremes' places, running sums, the k largest.

Words: x, y (and, of ``top_k``, the indices), items, items a task, size of the axis,
elements after it, then two parameters.  An item is one line along the axis.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.catalog.reduce import INTEGER_FORMS
from edgewise.kernels.native.abi import OK, f32, helper, i32, i64
from edgewise.kernels.native.walk import offset_1, quotient

SUM, L1, SQUARE, PROD, MAX, MIN, MEAN = range(len(INTEGER_FORMS))


@helper
def above(a, b):
    """Whether ``a`` sorts after ``b``: NaN after every number."""
    return a > b or (a != a and b == b)


@helper
def before(a, i, b, j, largest):
    """Whether element ``i`` comes first in the order asked for."""
    if largest:
        return above(a, b) or (not above(b, a) and i < j)
    return above(b, a) or (not above(a, b) and i < j)


def arg(pointer, size):
    """A kernel for the place of an extreme; parameters: largest, last of equal ones."""

    def kernel(args, begin, end, worker):
        n, inner, largest, last = args[4], args[5], args[6] != 0, args[7] != 0
        y = i64(args[1])
        for item in range(begin * args[3], min(end * args[3], args[2])):
            outer = quotient(item, inner)
            x = pointer(args[0] + size * (outer * n * inner + item - outer * inner))
            best, place = x[0], 0
            for k in range(1, n):
                v = x[k * inner]
                nan = v != v
                better = (v > best if largest else v < best) or (nan and best == best)
                equal = v == best or (nan and best != best)
                if better or (last and equal):
                    best, place = v, k
            y[item] = place
        return OK

    return kernel


def cumsum(pointer, size, wider):
    """A kernel for running sums; parameters: without the element, from the end."""

    def kernel(args, begin, end, worker):
        n, inner, exclusive, backwards = args[4], args[5], args[6] != 0, args[7] != 0
        for item in range(begin * args[3], min(end * args[3], args[2])):
            outer = quotient(item, inner)
            at = size * (outer * n * inner + item - outer * inner)
            x, y = pointer(args[0] + at), pointer(args[1] + at)
            total = wider(0)
            for k in range(n):
                place = (n - 1 - k if backwards else k) * inner
                v = wider(x[place])
                y[place] = total if exclusive else total + v
                total += v
        return OK

    return kernel


def top_k(pointer, size):
    """A kernel for the k first in order; parameters: k, largest.

    The outputs hold the best so far, as a heap whose root is the worst of them: no
    memory but theirs is needed.  Taking root after root off sorts them.
    """

    @helper
    def sift(y, places, inner, root, count, largest):
        v, p = y[root * inner], places[root * inner]
        while True:
            child = 2 * root + 1
            if child >= count:
                break
            a, i = y[child * inner], places[child * inner]
            if child + 1 < count:
                b, j = y[(child + 1) * inner], places[(child + 1) * inner]
                if before(a, i, b, j, largest):
                    child, a, i = child + 1, b, j
            if not before(v, p, a, i, largest):
                break
            y[root * inner], places[root * inner] = a, i
            root = child
        y[root * inner], places[root * inner] = v, p

    def kernel(args, begin, end, worker):
        n, inner, k, largest = args[5], args[6], args[7], args[8] != 0
        for item in range(begin * args[4], min(end * args[4], args[3])):
            outer = quotient(item, inner)
            j = item - outer * inner
            x = pointer(args[0] + size * (outer * n * inner + j))
            y = pointer(args[1] + size * (outer * k * inner + j))
            places = i64(args[2] + 8 * (outer * k * inner + j))
            for i in range(k):
                y[i * inner], places[i * inner] = x[i * inner], i
            for root in range(k // 2 - 1, -1, -1):
                sift(y, places, inner, root, k, largest)
            for i in range(k, n if k > 0 else 0):
                if before(x[i * inner], i, y[0], places[0], largest):
                    y[0], places[0] = x[i * inner], i
                    sift(y, places, inner, 0, k, largest)
            for last in range(k - 1, 0, -1):
                v, p = y[last * inner], places[last * inner]
                y[last * inner], places[last * inner] = y[0], places[0]
                y[0], places[0] = v, p
                sift(y, places, inner, 0, last, largest)
        return OK

    return kernel


@helper
def joined(code, total, v):
    """One more whole number in a reduction."""
    if code in (SUM, MEAN):
        return total + v
    if code == L1:
        return total + (-v if v < 0 else v)
    if code == SQUARE:
        return total + v * v
    if code == PROD:
        return total * v
    return max(total, v) if code == MAX else min(total, v)


def reduce(pointer, size, low, high):
    """A kernel for reductions of whole numbers.

    Words: x, y, outputs, outputs a task, code, elements an output; then rank, sizes and
    strides of kept and of reduced axes.
    """

    def kernel(args, begin, end, worker):
        code, n, others = args[4], args[5], 7 + 2 * args[6]
        y, start = pointer(args[1]), np.int64(0)
        if code == PROD:
            start = np.int64(1)
        elif code == MAX:
            start = np.int64(low)
        elif code == MIN:
            start = np.int64(high)
        for item in range(begin * args[3], min(end * args[3], args[2])):
            x = pointer(args[0] + size * offset_1(args, 6, item))
            total = start
            for k in range(n):
                v = np.int64(x[offset_1(args, others, k)])
                total = joined(code, total, v)
            if code == MEAN:
                count = max(n, 1)
                size_ = quotient(-total if total < 0 else total, count)
                total = -size_ if total < 0 else size_
            y[item] = total
        return OK

    return kernel


EXPORTS = {
    "arg_f32": arg(f32, 4),
    "arg_i64": arg(i64, 8),
    "arg_i32": arg(i32, 4),
    "cumsum_f32": cumsum(f32, 4, np.float64),
    "cumsum_i64": cumsum(i64, 8, np.int64),
    "cumsum_i32": cumsum(i32, 4, np.int64),
    "top_k_f32": top_k(f32, 4),
    "top_k_i64": top_k(i64, 8),
    "top_k_i32": top_k(i32, 4),
    "reduce_i64": reduce(i64, 8, -(2**63), 2**63 - 1),
    "reduce_i32": reduce(i32, 4, -(2**31), 2**31 - 1),
}
