"""Exponentials, powers, remainders of float32 in float64, no libm: within 1 ulp.

Each keeps a relative error below 1e-9 before the last rounding, for every float32
input: denormals, infinities and NaN included.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.abi import helper

LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
LOG2E = 1.4426950408889634
NAN, INFINITY = np.nan, np.inf


def _f64_intrinsic(name: str, count: int):
    kinds = [ir.DoubleType()] * count

    def emit(builder, args):
        full = f"llvm.{name}.f64"
        function = builder.module.globals.get(full) or ir.Function(
            builder.module, ir.FunctionType(ir.DoubleType(), kinds), full
        )
        return builder.call(function, args)

    if count == 1:

        @intrinsic
        def one(context, x):
            def generate(_, builder, __, args):
                return emit(builder, args)

            return types.float64(types.float64), generate

        return one

    @intrinsic
    def two(context, x, y):
        def generate(_, builder, __, args):
            return emit(builder, args)

        return types.float64(types.float64, types.float64), generate

    return two


absolute = _f64_intrinsic("fabs", 1)
root = _f64_intrinsic("sqrt", 1)
nearest = _f64_intrinsic("rint", 1)
truncated = _f64_intrinsic("trunc", 1)
with_sign = _f64_intrinsic("copysign", 2)


@intrinsic
def nearest_f32(context, x):
    """The nearest whole number, ties to even."""

    def generate(_, builder, __, args):
        name, kind = "llvm.rint.f32", ir.FloatType()
        function = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(kind, [kind]), name
        )
        return builder.call(function, args)

    return types.float32(types.float32), generate


@intrinsic
def f64_bits(context, x):
    """The bits of a float64."""

    def generate(_, builder, __, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def bits_f64(context, word):
    """The float64 of these bits."""

    def generate(_, builder, __, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def f32_bits(context, x):
    """The bits of a float32."""

    def generate(_, builder, __, args):
        return builder.zext(builder.bitcast(args[0], ir.IntType(32)), ir.IntType(64))

    return types.int64(types.float32), generate


@helper
def exp(x):
    """``e`` to the ``x``, for ``|x|`` up to 700; NaN gives NaN."""
    x = min(max(x, -700.0), 700.0) if x == x else x
    n = nearest(x * LOG2E)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1.0 / 39916800.0
    for divisor in (
        3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0,
    ):  # fmt: skip
        p = p * r + 1.0 / divisor
    exponent = np.int64(n) if n == n else np.int64(0)
    return p * bits_f64((exponent + 1023) << 52)


@helper
def log(x):
    """The natural logarithm of a float32 held in a float64."""
    if not x > 0.0:
        return -INFINITY if x == 0.0 else NAN
    if x == INFINITY:
        return x
    bits = f64_bits(x)
    exponent = (bits >> 52) - 1023
    m = bits_f64((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)
    if m > 1.4142135623730951:
        m *= 0.5
        exponent += 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 19.0
    for divisor in (17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        p = p * z + 1.0 / divisor
    return exponent * LN2_HIGH + (2.0 * s * p + exponent * LN2_LOW)


@helper
def power(x, y):
    """``x ** y`` with the special cases of C's ``pow``."""
    if y == 2.0:  # by far the most usual power
        return x * x
    if y == 0.0 or x == 1.0:
        return 1.0
    if x != x or y != y:
        return NAN
    whole = truncated(y) == y
    odd = whole and truncated(y * 0.5) != y * 0.5 and absolute(y) < 16777216.0
    size = absolute(x)
    if size == 1.0:
        value = 1.0
    elif absolute(y) == INFINITY or size == 0.0 or size == INFINITY:
        value = INFINITY if (size > 1.0) == (y > 0.0) else 0.0
    else:
        value = exp(y * log(size))
    if f64_bits(x) < 0:
        if size > 0.0 and size < INFINITY and not whole and absolute(y) < INFINITY:
            return NAN
        return -value if odd else value
    return value


@helper
def remainder(x, y, floored_):
    """The remainder of ``x / y``, exact; of the divisor's sign where ``floored_``."""
    size, divisor = absolute(x), absolute(y)
    if not (size < INFINITY and divisor > 0.0):
        return NAN
    rest = with_sign(size if divisor == INFINITY else _reduced(size, divisor), x)
    if not floored_:
        return rest
    if rest == 0.0:
        return with_sign(rest, y)
    return rest + y if (rest < 0.0) != (y < 0.0) else rest


@helper
def _reduced(size, divisor):
    """``size`` modulo ``divisor``, 24 bits of the quotient at a time: all exact."""
    while size >= divisor:
        gap = (f64_bits(size) >> 52) - (f64_bits(divisor) >> 52)
        scaled = divisor * bits_f64((max(gap - 24, 0) + 1023) << 52)
        size -= truncated(size / scaled) * scaled
        if size < 0.0:
            size += scaled
    return size
