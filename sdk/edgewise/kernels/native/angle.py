"""Angles and hyperbolic functions of float32 in float64, without libm: within 1 ulp.

Angles of any size are reduced exactly: large ones by the bits of 2 / pi that matter.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import helper
from edgewise.kernels.native.scalar import (
    INFINITY,
    NAN,
    absolute,
    exp,
    f32_bits,
    f64_bits,
    log,
    nearest,
    root,
    with_sign,
)

HALF_PI, QUARTER_PI = 1.5707963267948966, 0.7853981633974483
# Half of pi in two pieces: 22-bit multiples of the first, of 30 bits, are exact.
HALF_PI_HIGH = float(np.floor(HALF_PI * 2**29) / 2**29)


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
