"""Transcendental functions of ``f32x16``, by polynomials fitted for float32.

Bounds are the largest errors found against float64, in units in the last place (ulp);
the tests hold them.  NaN gives NaN everywhere, infinities what mathematics says.  On
targets without fused multiply-add an error may be one ulp larger.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import helper
from edgewise.kernels.native.vector import (
    absolute,
    at_least,
    at_most,
    bits,
    copysign,
    fma,
    from_bits,
    select,
    splat,
    splat_i32,
    to_f32,
)

LOG2_E = np.float32(1.4426950408889634)
# ln 2 in two parts: the first has few bits, so that whole multiples of it are exact.
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
# Adding 1.5 * 2**23 rounds to a whole number and leaves that in the low bits.
MAGIC, MAGIC_BITS = np.float32(12582912.0), np.int32(0x4B400000)
NORMAL_END = 5.5  # beyond it, erf(x / sqrt(2)) is 1 in float32


@helper
def _power_of_two(n):
    """``2 ** n`` for whole ``n`` of an ``i32x16``, each in -126..127."""
    return from_bits((n + splat_i32(127)) << splat_i32(23))


@helper
def _reduce(x):
    """``(r, p, n)`` with ``x = n ln 2 + r`` and ``p = e**r - 1``."""
    shifted = fma(x, splat(LOG2_E), splat(MAGIC))
    whole = shifted - splat(MAGIC)
    r = fma(whole, splat(-LN2_HIGH), x)
    r = fma(whole, splat(-LN2_LOW), r)
    p = splat(1.395171932e-03)
    p = fma(p, r, splat(8.369598342e-03))
    p = fma(p, r, splat(4.166618725e-02))
    p = fma(p, r, splat(1.666651289e-01))
    p = fma(p, r, splat(5.000000101e-01))
    return fma(r * r, p, r), bits(shifted) - splat_i32(MAGIC_BITS)


@helper
def exp(x):
    """``e ** x`` within 1.2 ulp; denormal results are right to their own last place."""
    x = at_most(at_least(x, splat(-104.0)), splat(89.0))
    p, n = _reduce(x)
    # Two factors, so that neither is out of range where the result is denormal.
    half = n >> splat_i32(1)
    scaled = (p + splat(1.0)) * _power_of_two(half)
    return scaled * _power_of_two(n - half)


@helper
def exp2_parts(x):
    """``2 ** x`` as a product of two, for ``x`` from -125.5 to 126."""
    shifted = x + splat(MAGIC)
    r = x - (shifted - splat(MAGIC))
    p = splat(1.326458994e-03)
    p = fma(p, r, splat(9.671619162e-03))
    p = fma(p, r, splat(5.550735071e-02))
    p = fma(p, r, splat(2.402224094e-01))
    p = fma(p, r, splat(6.931470037e-01))
    p = fma(p, r, splat(1.0))
    # The bits of MAGIC fall off at the top; those of 1.0 make an exponent of the rest.
    return p, from_bits((bits(shifted) << splat_i32(23)) + splat_i32(0x3F800000))


@helper
def exp2_of_negative(x):
    """``2 ** x`` within 2.5 ulp for ``x`` up to 126; 0 where that would be denormal."""
    least = splat(-125.5)
    p, factor = exp2_parts(at_least(x, least))
    return select(x < least, splat(0.0), p * factor)


@helper
def exp_and_product(x, v):
    """``e ** x``, and ``v * e ** x`` within 2 ulp even where the former is denormal.

    Right for ``|v|`` up to 1e30: below -174 x is taken for -174.
    """
    x = at_most(at_least(x, splat(-174.0)), splat(89.0))
    p, n = _reduce(x)
    half = n >> splat_i32(1)
    scaled, rest = (p + splat(1.0)) * _power_of_two(half), _power_of_two(n - half)
    return scaled * rest, (v * scaled) * rest


@helper
def expm1(x):
    """``e ** x - 1`` within 2 ulp, near 0 too."""
    x = at_most(at_least(x, splat(-30.0)), splat(89.0))
    p, n = _reduce(x)
    half = n >> splat_i32(1)
    # 2**n (p + 1) - 1 in two factors: 2**n alone would overflow before the result does.
    low, high = _power_of_two(half), _power_of_two(n - half)
    return fma(p, low, low - _power_of_two(half - n)) * high


@helper
def tanh(x):
    """Hyperbolic tangent within 3 ulp."""
    magnitude = at_most(absolute(x), splat(10.0))
    t = expm1(magnitude + magnitude)
    return copysign(t / (t + splat(2.0)), x)


@helper
def sigmoid(x):
    """``1 / (1 + e ** -x)`` within 3 ulp, to 0 below -88.7."""
    return splat(1.0) / (splat(1.0) + exp(-x))


@helper
def log(x):
    """Natural logarithm within 2 ulp; of 0 minus infinity, of less NaN."""
    tiny = x < splat(1.17549435e-38)
    scaled = select(tiny, x * splat(8388608.0), x)
    raw = bits(scaled)
    # Split at sqrt(1/2), whose bits are 0x3F3504F3, so that m lies in [0.707, 1.414).
    shifted = raw - splat_i32(0x3F3504F3)
    exponent = shifted >> splat_i32(23)
    f = from_bits(raw - (exponent << splat_i32(23))) - splat(1.0)
    e = to_f32(exponent) - select(tiny, splat(23.0), splat(0.0))
    result = fma(e, splat(LN2_HIGH), _log_near_one(f, e))
    result = select(x > splat(3.4028235e38), x, result)
    result = select(x == splat(0.0), splat(-np.inf), result)
    return select(x >= splat(0.0), result, splat(np.nan))


@helper
def _log_near_one(f, e):
    """``log(1 + f)`` plus the low part of ``e`` times ln 2."""
    p = splat(-7.859615926e-02)
    p = fma(p, f, splat(1.288165428e-01))
    p = fma(p, f, splat(-1.312875623e-01))
    p = fma(p, f, splat(1.418119108e-01))
    p = fma(p, f, splat(-1.662455383e-01))
    p = fma(p, f, splat(2.000228631e-01))
    p = fma(p, f, splat(-2.500081041e-01))
    p = fma(p, f, splat(3.333331673e-01))
    square = f * f
    tail = fma(square * f, p, e * splat(LN2_LOW))
    return f + fma(square, splat(-0.5), tail)


@helper
def log1p(x):
    """``log(1 + x)`` within 3 ulp for ``x`` >= -0.5, near 0 too."""
    sum_ = x + splat(1.0)
    lost = x - (sum_ - splat(1.0))
    result = log(sum_) + lost / sum_
    return select(sum_ > splat(3.4028235e38), sum_, result)


@helper
def erf(x):
    """Error function within 3 ulp."""
    magnitude = at_most(absolute(x), splat(4.0))
    u = magnitude * magnitude
    s = splat(7.853861106e-05)
    s = fma(s, u, splat(-8.010193681e-04))
    s = fma(s, u, splat(5.188327710e-03))
    s = fma(s, u, splat(-2.685381196e-02))
    s = fma(s, u, splat(1.128358515e-01))
    s = fma(s, u, splat(-3.761262582e-01))
    s = fma(s, u, splat(1.128379166e00)) * magnitude
    q = splat(-1.855742196e-04)
    q = fma(q, magnitude, splat(2.939609405e-03))
    q = fma(q, magnitude, splat(-2.180532692e-02))
    q = fma(q, magnitude, splat(1.030373871e-01))
    q = fma(q, magnitude, splat(6.382256556e-01))
    q = fma(q, magnitude, splat(1.127040049e00))
    q = fma(q, magnitude, splat(3.537161225e-04))
    far = splat(1.0) - exp(-q)
    return copysign(select(magnitude < splat(1.0), s, far), x)


@helper
def erf_of_normal(x):
    """``erf(x / sqrt(2))`` within 3.2e-7, as a quotient: half the work of ``erf``.

    Beyond ``NORMAL_END`` it is 1.  Where a relative error counts, use ``erf``.
    """
    x = at_most(at_least(x, splat(-NORMAL_END)), splat(NORMAL_END))
    u = x * x
    p = splat(3.526194803e-08)
    p = fma(p, u, splat(9.845743079e-06))
    p = fma(p, u, splat(2.616744605e-04))
    p = fma(p, u, splat(7.249720860e-03))
    p = fma(p, u, splat(5.247108266e-02))
    p = fma(p, u, splat(6.183604598e-01))
    q = splat(9.280704489e-07)
    q = fma(q, u, splat(5.707595847e-05))
    q = fma(q, u, splat(1.460429397e-03))
    q = fma(q, u, splat(2.220040001e-02))
    q = fma(q, u, splat(1.949288398e-01))
    q = fma(q, u, splat(7.749999762e-01))
    return x * p / q
