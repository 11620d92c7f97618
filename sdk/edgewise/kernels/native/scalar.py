"""Rare functions of float32, computed in float64 without libm: within 1 ulp.

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
HALF_PI, QUARTER_PI = 1.5707963267948966, 0.7853981633974483
# Half of pi in two pieces: 22-bit multiples of the first, of 30 bits, are exact.
HALF_PI_HIGH = float(np.floor(HALF_PI * 2**29) / 2**29)
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
floored = _f64_intrinsic("floor", 1)
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


def half_pi_bits(count: int) -> int:
    """``pi / 2 * 2**count``, rounded down, by Machin's formula."""
    guard = count + 64

    def arctan_inverse(n: int) -> int:
        total = term = (1 << guard) // n
        k, sign = 1, -1
        while term:
            term //= n * n
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    return (8 * arctan_inverse(5) - 2 * arctan_inverse(239)) >> 64


def _quarter_turns() -> tuple[np.ndarray, np.ndarray]:
    """For each ``e``: ``2**e * 2 / pi`` modulo 4 in units of ``2**-62``, 96 bits."""
    scale = 320
    inverse = (1 << (2 * scale)) // half_pi_bits(scale)
    high, low = [], []
    for exponent in range(105):
        units = (inverse << exponent) >> (scale - 62 - 32)
        high.append((units >> 32) & (2**64 - 1))
        low.append(units & (2**32 - 1))
    return np.array(high, np.uint64).view(np.int64), np.array(low, np.int64)


TURNS_HIGH, TURNS_LOW = _quarter_turns()
_HALF_PI_REST = half_pi_bits(140) - (int(HALF_PI_HIGH * 2**29) << 111)
HALF_PI_LOW = float(_HALF_PI_REST) / 2.0**140


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
def _turn(x):
    """``|x|`` as (quarter turns modulo 4, rest in radians within a quarter of pi)."""
    size = absolute(x)
    if size < 8388608.0:
        n = nearest(size * (1.0 / HALF_PI))
        return np.int64(n), (size - n * HALF_PI_HIGH) - n * HALF_PI_LOW
    bits = f32_bits(np.float32(size))
    mantissa, exponent = (bits & 0x7FFFFF) | 0x800000, (bits >> 23) - 150
    turns = mantissa * TURNS_HIGH[exponent] + ((mantissa * TURNS_LOW[exponent]) >> 32)
    n = (turns + (1 << 61)) >> 62
    return n, (turns - (n << 62)) * (HALF_PI / 4611686018427387904.0)


@helper
def _sine(r):
    z = r * r
    p = 1.0 / 6227020800.0
    for divisor in (-39916800.0, 362880.0, -5040.0, 120.0, -6.0, 1.0):
        p = p * z + 1.0 / divisor
    return r * p


@helper
def _cosine(r):
    z = r * r
    p = -1.0 / 87178291200.0
    for divisor in (479001600.0, -3628800.0, 40320.0, -720.0, 24.0, -2.0, 1.0):
        p = p * z + 1.0 / divisor
    return p


@helper
def sin(x):
    """Sine; NaN for infinity."""
    if not absolute(x) < INFINITY:
        return NAN
    n, r = _turn(x)
    value = _cosine(r) if n & 1 else _sine(r)
    value = -value if n & 2 else value
    return -value if f64_bits(x) < 0 else value


@helper
def cos(x):
    """Cosine; NaN for infinity."""
    if not absolute(x) < INFINITY:
        return NAN
    n, r = _turn(x)
    value = _sine(r) if n & 1 else _cosine(r)
    return -value if (n + 1) & 2 else value


@helper
def tan(x):
    """Tangent; NaN for infinity."""
    if not absolute(x) < INFINITY:
        return NAN
    n, r = _turn(x)
    value = -_cosine(r) / _sine(r) if n & 1 else _sine(r) / _cosine(r)
    return -value if f64_bits(x) < 0 else value


@helper
def atan(x):
    """Arc tangent."""
    t, base = absolute(x), 0.0
    inverse = t > 1.0
    if inverse:
        t = 1.0 / t
    if t > 0.41421356237309503:
        t, base = (t - 1.0) / (t + 1.0), QUARTER_PI
    z = t * t
    p = 1.0 / 29.0
    for divisor in (
        -27.0, 25.0, -23.0, 21.0, -19.0, 17.0, -15.0, 13.0, -11.0, 9.0, -7.0, 5.0,
        -3.0, 1.0,
    ):  # fmt: skip
        p = p * z + 1.0 / divisor
    value = base + t * p
    return with_sign(HALF_PI - value if inverse else value, x)


@helper
def asin(x):
    """Arc sine; NaN outside [-1, 1]."""
    return atan(x / root((1.0 - x) * (1.0 + x)))


@helper
def acos(x):
    """Arc cosine; NaN outside [-1, 1]."""
    return HALF_PI - asin(x)


@helper
def sinh(x):
    """Hyperbolic sine."""
    if absolute(x) < 1e-3:
        return x + x * x * x * (1.0 / 6.0)
    return 0.5 * (exp(x) - exp(-x))


@helper
def cosh(x):
    """Hyperbolic cosine."""
    return 0.5 * (exp(x) + exp(-x))


@helper
def asinh(x):
    """Inverse hyperbolic sine."""
    size = absolute(x)
    if size < 1e-3:
        return x - x * x * x * (1.0 / 6.0)
    return with_sign(log(size + root(x * x + 1.0)), x)


@helper
def acosh(x):
    """Inverse hyperbolic cosine; NaN below 1."""
    return log(x + root(x * x - 1.0)) if x >= 1.0 else NAN


@helper
def atanh(x):
    """Inverse hyperbolic tangent; infinite at 1, NaN beyond."""
    if absolute(x) < 1e-3:
        return x + x * x * x * (1.0 / 3.0)
    return 0.5 * log((1.0 + x) / (1.0 - x))


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
