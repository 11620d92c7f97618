"""Reading the words of a ``Walk``: which rows a task has, and where each row lies.

The words of a walk over ``n`` operands, from word ``at`` on: items, items a task,
chunks a row, elements a chunk, elements a row, rank, ``n`` strides along the row,
``rank`` sizes of the other axes, then ``rank`` strides for each operand.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.abi import helper, i16, i32, i64, u8


@intrinsic
def quotient(context, a, b):
    """``a / b`` of numbers that are not negative: no sign to mend, no trap."""

    def generate(_, builder, __, args):
        return builder.udiv(*args)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def copy_bytes(context, target, source, count):
    """Copy ``count`` bytes between places that do not overlap."""

    def generate(cg, builder, _, args):
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(
            ir.VoidType(), [pointer, pointer, ir.IntType(64), ir.IntType(1)]
        )
        name = "llvm.memcpy.p0.p0.i64"
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, kind, name
        )
        places = (builder.inttoptr(place, pointer) for place in args[:2])
        builder.call(function, [*places, args[2], ir.Constant(ir.IntType(1), 0)])
        return cg.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@helper
def first_item(args, at, begin):
    """The first item of task ``begin``."""
    return begin * args[at + 1]


@helper
def end_item(args, at, end):
    """One past the last item of task ``end - 1``."""
    return min(end * args[at + 1], args[at])


@helper
def row_span(args, at, item):
    """The item's row, and where in the row it starts and how many elements it has."""
    row = quotient(item, args[at + 2])
    start = (item - row * args[at + 2]) * args[at + 3]
    return row, start, min(args[at + 3], args[at + 4] - start)


@helper
def offset_2(args, at, row):
    """Offsets, in elements, of both operands of a walk over two."""
    rank = args[at + 5]
    dims, steps_a = at + 8, at + 8 + rank
    steps_b = steps_a + rank
    a, b = 0, 0
    for axis in range(rank - 1, 0, -1):
        rest = quotient(row, args[dims + axis])
        index = row - rest * args[dims + axis]
        a += index * args[steps_a + axis]
        b += index * args[steps_b + axis]
        row = rest
    if rank > 0:
        a += row * args[steps_a]
        b += row * args[steps_b]
    return a, b


@helper
def offset_3(args, at, row):
    """Offsets, in elements, of the operands of a walk over three."""
    rank = args[at + 5]
    dims, steps_a = at + 9, at + 9 + rank
    steps_b, steps_c = steps_a + rank, steps_a + 2 * rank
    a, b, c = 0, 0, 0
    for axis in range(rank - 1, -1, -1):
        rest = quotient(row, args[dims + axis])
        index = row - rest * args[dims + axis]
        a += index * args[steps_a + axis]
        b += index * args[steps_b + axis]
        c += index * args[steps_c + axis]
        row = rest
    return a, b, c


@helper
def offset_1(args, at, index):
    """Offset, in elements, of position ``index``; from ``at``: rank, sizes, strides."""
    rank = args[at]
    dims, steps = at + 1, at + 1 + rank
    total = 0
    for axis in range(rank - 1, 0, -1):
        rest = quotient(index, args[dims + axis])
        total += (index - rest * args[dims + axis]) * args[steps + axis]
        index = rest
    if rank > 0:
        total += index * args[steps]
    return total


@helper
def move(target, source, size):
    """Copy one element of 1, 2, 4 or 8 bytes."""
    if size == 4:
        i32(target)[0] = i32(source)[0]
    elif size == 8:
        i64(target)[0] = i64(source)[0]
    elif size == 1:
        u8(target)[0] = u8(source)[0]
    else:
        i16(target)[0] = i16(source)[0]


@helper
def copy_run(target, source, size):
    """Copy ``size`` bytes; without a call where they are a number."""
    if size in (4, 8):
        move(target, source, size)
    else:
        copy_bytes(target, source, size)
