"""Conversions between number types.

Floats lose their fraction; beyond an integer type they become its nearest end, NaN
becomes 0.  Integers wrap around.  Words as in ``elementwise``; word 4 is the target, as
its place in the catalogue's ``CAST``.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.catalog.elementwise import CAST
from edgewise.kernels.native.abi import OK, f32, f64, helper, i8, i32, i64, u8
from edgewise.kernels.native.halves import load_half, load_halves
from edgewise.kernels.native.memory import store
from edgewise.kernels.native.vector import LANES

F32, F64, I64, I32, I8, U8, BOOL = range(len(CAST))


@intrinsic
def saturated(context, x):
    """A float64 as the nearest int64, its fraction cut off; 0 for NaN."""

    def generate(_, builder, __, args):
        name, kind = "llvm.fptosi.sat.i64.f64", ir.IntType(64)
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(kind, [ir.DoubleType()]), name
        )
        return builder.call(function, args)

    return types.int64(types.float64), generate


@helper
def cut(x, low, high):
    """A float as a whole number within bounds."""
    return min(max(saturated(np.float64(x)), np.int64(low)), np.int64(high))


def from_float(pointer):
    """A kernel from one float type to any type."""

    def kernel(args, begin, end, worker):
        x, y, to = pointer(args[0]), args[1], args[4]
        span = range(begin * args[3], min(end * args[3], args[2]))
        if to == F32:
            for i in span:
                f32(y)[i] = np.float32(x[i])
        elif to == F64:
            for i in span:
                f64(y)[i] = np.float64(x[i])
        elif to == I64:
            for i in span:
                i64(y)[i] = saturated(np.float64(x[i]))
        elif to == I32:
            for i in span:
                i32(y)[i] = cut(x[i], -(2**31), 2**31 - 1)
        elif to == I8:
            for i in span:
                i8(y)[i] = cut(x[i], -128, 127)
        elif to == U8:
            for i in span:
                u8(y)[i] = cut(x[i], 0, 255)
        else:
            for i in span:
                u8(y)[i] = x[i] != 0
        return OK

    return kernel


def from_integer(pointer):
    """A kernel from one integer type, or bool, to any type."""

    def kernel(args, begin, end, worker):
        x, y, to = pointer(args[0]), args[1], args[4]
        span = range(begin * args[3], min(end * args[3], args[2]))
        if to == F32:
            for i in span:
                f32(y)[i] = np.float32(x[i])
        elif to == F64:
            for i in span:
                f64(y)[i] = np.float64(x[i])
        elif to == I64:
            for i in span:
                i64(y)[i] = np.int64(x[i])
        elif to == I32:
            for i in span:
                i32(y)[i] = np.int64(x[i])
        elif to in (I8, U8):
            for i in span:
                i8(y)[i] = np.int64(x[i])
        else:
            for i in span:
                u8(y)[i] = x[i] != 0
        return OK

    return kernel


def from_half(args, begin, end, worker):
    """Halves to float32 alone."""
    x, y = args[0], args[1]
    first, last = begin * args[3], min(end * args[3], args[2])
    whole = last - (last - first) % LANES
    for i in range(first, whole, LANES):
        store(y + 4 * i, load_halves(x + 2 * i))
    for i in range(whole, last):
        f32(y)[i] = load_half(x + 2 * i)
    return OK


EXPORTS = {
    "cast_f16": from_half,
    "cast_f32": from_float(f32),
    "cast_f64": from_float(f64),
    "cast_i64": from_integer(i64),
    "cast_i32": from_integer(i32),
    "cast_i8": from_integer(i8),
    "cast_u8": from_integer(u8),
    "cast_bool": from_integer(u8),
}
