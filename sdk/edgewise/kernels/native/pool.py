"""Pooling of channels-last images: sixteen channels of a window at a time.

Words: x, y, rows of y in all, rows a task, H, W, C, output H, output W, kernel,
strides, top and left pads, dilations (two words each), whether the border counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edgewise.kernels.native.abi import OK, helper
from edgewise.kernels.native.memory import (
    load_bytes_part,
    load_part,
    store_bytes_part,
    store_part,
)
from edgewise.kernels.native.vector import (
    from_i8,
    from_u8,
    maximum,
    select_i32,
    splat,
    splat_i32,
    to_bytes,
)
from edgewise.kernels.native.walk import quotient


@helper
def first_tap(at, step):
    """The first tap of a window from ``at`` on that is not before the image."""
    return quotient(step - 1 - at, step) if at < 0 else 0


@helper
def end_tap(at, step, taps, size):
    """One past the last tap of a window from ``at`` on that is inside the image."""
    return min(taps, quotient(size - at + step - 1, step)) if at < size else 0


class Elements(NamedTuple):
    """What is pooled: bytes of one, how lanes are read and written, the larger."""

    size: int
    read: Callable[..., object]
    write: Callable[..., None]
    larger: Callable[..., object]
    least: Callable[..., object]


def _bytes(widen, least: int) -> Elements:
    @helper
    def read(address, lanes):
        return widen(load_bytes_part(address, lanes))

    @helper
    def write(address, value, lanes):
        store_bytes_part(address, to_bytes(value), lanes)

    @helper
    def larger(x, y):
        return select_i32(x > y, x, y)

    @helper
    def lowest():
        return splat_i32(np.int32(least))

    return Elements(1, read, write, larger, lowest)


@helper
def _lowest():
    return splat(-np.inf)


REALS = Elements(4, load_part, store_part, maximum, _lowest)


def largest(of: Elements):
    """A kernel for the largest."""
    size, read, write, larger, least = of

    def kernel(args, begin, end, worker):
        height, width, channels = args[4], args[5], args[6]
        out_height, out_width = args[7], args[8]
        r_step, s_step = args[15], args[16]
        for row in range(begin * args[3], min(end * args[3], args[2])):
            n = quotient(row, out_height)
            y = (row - n * out_height) * args[11] - args[13]
            r0 = first_tap(y, r_step)
            r1 = end_tap(y, r_step, args[9], height)
            image = args[0] + size * n * height * width * channels
            for i in range(out_width):
                x = i * args[12] - args[14]
                s0 = first_tap(x, s_step)
                s1 = end_tap(x, s_step, args[10], width)
                out = args[1] + size * (row * out_width + i) * channels
                for c in range(0, channels, 16):
                    found = least()
                    for r in range(r0, r1):
                        line = image + size * ((y + r * r_step) * width + x) * channels
                        for s in range(s0, s1):
                            at = line + size * (s * s_step * channels + c)
                            found = larger(found, read(at, channels - c))
                    write(out + size * c, found, channels - c)
        return OK

    return kernel


def average_pool_f32(args, begin, end, worker):
    """Means."""
    height, width, channels = args[4], args[5], args[6]
    out_height, out_width = args[7], args[8]
    r_step, s_step = args[15], args[16]
    for row in range(begin * args[3], min(end * args[3], args[2])):
        n = quotient(row, out_height)
        y = (row - n * out_height) * args[11] - args[13]
        r0 = first_tap(y, r_step)
        r1 = end_tap(y, r_step, args[9], height)
        image = args[0] + 4 * n * height * width * channels
        for i in range(out_width):
            x = i * args[12] - args[14]
            s0 = first_tap(x, s_step)
            s1 = end_tap(x, s_step, args[10], width)
            out = args[1] + 4 * (row * out_width + i) * channels
            count = max((r1 - r0) * (s1 - s0), 1)
            if args[17] != 0:
                count = args[9] * args[10]
            divisor = splat(np.float32(count))
            for c in range(0, channels, 16):
                total = splat(0.0)
                for r in range(r0, r1):
                    line = image + 4 * ((y + r * r_step) * width + x) * channels
                    for s in range(s0, s1):
                        at = line + 4 * (s * s_step * channels + c)
                        total = total + load_part(at, channels - c)
                store_part(out + 4 * c, total / divisor, channels - c)
    return OK


EXPORTS = {
    "max_pool_f32": largest(REALS),
    "max_pool_u8": largest(_bytes(from_u8, 0)),
    "max_pool_i8": largest(_bytes(from_i8, -128)),
    "average_pool_f32": average_pool_f32,
}
