"""Linear layers and convolutions over reals with weights of few bits.

Blocks of rows widen what they read of a panel once and are products over reals from
there on.  A single row reads each weight once: it widens in registers, so that no more
than the few bits come from memory.  Both give the bits that float32 weights would.
"""

from __future__ import annotations

from edgewise.kernels.native.abi import f32, helper
from edgewise.kernels.native.conv import make_conv
from edgewise.kernels.native.epilogue import ending, store_buffer
from edgewise.kernels.native.matmul import product_of
from edgewise.kernels.native.memory import store
from edgewise.kernels.native.product import LANES, make_multiply
from edgewise.kernels.native.tile import REALS
from edgewise.kernels.native.vector import fma, splat
from edgewise.kernels.native.widen import BLOCK, KINDS, Narrow, make_panels, make_size

WIDE = 4


def _make_sums(kind: Narrow):
    """A row times four panels, or one: so many sums hide the latency."""
    numbers, scale_of = kind.numbers, kind.scale
    width, header = kind.width, kind.header

    @helper
    def four(x, k, block, panel, size, out):
        a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        row, begin, here = f32(x), 0, panel
        while begin < k:
            end = min(begin + block, k)
            of_a, of_b = scale_of(here), scale_of(here + size)
            of_c, of_d = scale_of(here + 2 * size), scale_of(here + 3 * size)
            here += header
            for i in range(begin, end):
                value = splat(row[i])
                a = fma(value, numbers(here) * of_a, a)
                b = fma(value, numbers(here + size) * of_b, b)
                c = fma(value, numbers(here + 2 * size) * of_c, c)
                d = fma(value, numbers(here + 3 * size) * of_d, d)
                here += width
            begin = end
        store(out, a)
        store(out + 64, b)
        store(out + 128, c)
        store(out + 192, d)

    @helper
    def one(x, k, block, panel, out):
        total, row, begin, here = splat(0.0), f32(x), 0, panel
        while begin < k:
            end = min(begin + block, k)
            scale = scale_of(here)
            here += header
            for i in range(begin, end):
                total = fma(splat(row[i]), numbers(here) * scale, total)
                here += width
            begin = end
        store(out, total)

    return four, one


def make_one_row(kind: Narrow):
    """One row times panels."""
    (four, one), size_of = _make_sums(kind), make_size(kind)

    @helper
    def one_row(args, at, scratch, row, x, k, first, last, panels):
        p, block = first, args[at + BLOCK]
        size = size_of(k, block)
        while p < last:
            count = WIDE if p + WIDE <= last else 1
            panel = panels + size * p
            if count == WIDE:
                four(x, k, block, panel, size, scratch)
            else:
                one(x, k, block, panel, scratch)
            for i in range(count):
                column = LANES * (p + i)
                lanes = min(args[at + 2] - column, LANES)
                end, buffer = ending(args, at, column, lanes), scratch + 64 * i
                store_buffer(args, at, row, column, 1, lanes, buffer, end)
            p += count

    return one_row


def _exports() -> dict[str, object]:
    found = {}
    for name, kind in KINDS.items():
        panels = make_panels(kind)
        multiply = make_multiply(panels=panels)
        one_row, most = make_one_row(kind), REALS.rows
        found[f"product_{name}_weights"] = product_of(one_row, multiply, most)
        found[f"conv_{name}_weights"] = make_conv(multiply, most, panels)
    return found


EXPORTS = _exports()
