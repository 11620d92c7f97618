"""Between products over bytes: tables, sums and products of two images.

Words of a table: x, y, size, elements a task, table.  Words of the others: a, b, y,
factors of both as float bits, zero points of both, zero point of y, the least byte,
then a walk over a and b.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, as_f32, helper, i8, u8
from edgewise.kernels.native.memory import (
    load_bytes,
    load_bytes_part,
    store_bytes,
    store_bytes_part,
)
from edgewise.kernels.native.quantize import whole_bytes
from edgewise.kernels.native.vector import (
    LANES,
    fma,
    from_i8,
    from_u8,
    splat,
    splat_i32,
    to_f32,
)
from edgewise.kernels.native.walk import end_item, first_item, offset_2, row_span

WALK = 9


def table_8(args, begin, end, worker):
    """Each byte looked up, whatever its sign."""
    x, y, table = u8(args[0]), u8(args[1]), u8(args[4])
    for i in range(begin * args[3], min(end * args[3], args[2])):
        y[i] = table[x[i]]
    return OK


def pair(pointer, widen, join):
    """A kernel that makes bytes of ``join(a, b, factor of a, factor of b)``.

    Differences, products and sums of two differences are exact in float32.
    """

    @helper
    def one(address, zero):
        return splat(np.float32(pointer(address)[0])) - zero

    @helper
    def many(address, zero):
        return to_f32(widen(load_bytes(address))) - zero

    @helper
    def some(address, step, lanes, zero):
        if step == 0:
            return one(address, zero)
        return to_f32(widen(load_bytes_part(address, lanes))) - zero

    @helper
    def row(a, b, y, steps, count, zeros, by, ends):
        whole, left, right = count & -LANES, one(a, zeros[0]), one(b, zeros[1])
        if steps[0] == 1 and steps[1] == 1:
            for j in range(0, whole, LANES):
                v = join(many(a + j, zeros[0]), many(b + j, zeros[1]), by)
                store_bytes(y + j, whole_bytes(v, *ends))
        elif steps[0] == 1 and steps[1] == 0:
            for j in range(0, whole, LANES):
                v = join(many(a + j, zeros[0]), right, by)
                store_bytes(y + j, whole_bytes(v, *ends))
        elif steps[0] == 0 and steps[1] == 1:
            for j in range(0, whole, LANES):
                v = join(left, many(b + j, zeros[1]), by)
                store_bytes(y + j, whole_bytes(v, *ends))
        else:
            whole = 0  # both are one number, and so is the row
        if whole < count:
            lanes = count - whole
            left = some(a + whole * steps[0], steps[0], lanes, zeros[0])
            right = some(b + whole * steps[1], steps[1], lanes, zeros[1])
            v = join(left, right, by)
            store_bytes_part(y + whole, whole_bytes(v, *ends), lanes)

    def kernel(args, begin, end, worker):
        by = splat(as_f32(args[3])), splat(as_f32(args[4]))
        zeros = splat(np.float32(args[5])), splat(np.float32(args[6]))
        zero, bottom = args[7], np.float32(args[8] - args[7])
        least, most = splat(bottom), splat(bottom + np.float32(255.0))
        ends = least, most, splat_i32(np.int32(zero))
        steps, inner = (args[WALK + 6], args[WALK + 7]), args[WALK + 4]
        for item in range(first_item(args, WALK, begin), end_item(args, WALK, end)):
            at, start, count = row_span(args, WALK, item)
            at_a, at_b = offset_2(args, WALK, at)
            a, b = args[0] + at_a + start * steps[0], args[1] + at_b + start * steps[1]
            row(a, b, args[2] + at * inner + start, steps, count, zeros, by, ends)
        return OK

    return kernel


@helper
def added(a, b, by):
    """The sum, in steps of the output."""
    return fma(a, by[0], b * by[1])


@helper
def multiplied(a, b, by):
    """The product likewise."""
    return a * b * by[0]


EXPORTS = {
    "byte_table": table_8,
    "byte_add_u8": pair(u8, from_u8, added),
    "byte_add_i8": pair(i8, from_i8, added),
    "byte_mul_u8": pair(u8, from_u8, multiplied),
    "byte_mul_i8": pair(i8, from_i8, multiplied),
}
