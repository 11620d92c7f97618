"""How fast the processor multiplies and adds at best: the measure for products."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK, as_f32
from edgewise.kernels.native.memory import store
from edgewise.kernels.native.vector import fma, splat

CHAINS = 6  # of 16 lanes: enough for two units of a latency of up to six cycles


def peak_f32(args, begin, end, worker):
    """Steps ``[begin, end)`` of six chains of 16 multiply-adds, in registers alone.

    Words: where to store a vector that depends on all of them, x and y as float bits.
    """
    x, y = splat(as_f32(args[1])), splat(as_f32(args[2]))
    a, b, c = splat(1.0), splat(2.0), splat(3.0)
    d, e, f = splat(4.0), splat(5.0), splat(6.0)
    for _ in range(begin, end):
        a, b, c = fma(a, x, y), fma(b, x, y), fma(c, x, y)
        d, e, f = fma(d, x, y), fma(e, x, y), fma(f, x, y)
    store(args[0], a + b + c + d + e + f)
    return OK


EXPORTS = {"peak_f32": peak_f32}
