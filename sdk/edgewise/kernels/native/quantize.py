"""Real numbers to small integers and back; scale and zero point broadcast.

Words: x, scale, zero point, y, then a walk over x and the scales.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, as_f32, f32, helper, i8, i16, i32, u8, u16
from edgewise.kernels.native.memory import load_part, store_bytes_part
from edgewise.kernels.native.requantize import ROUNDER
from edgewise.kernels.native.scalar import nearest_f32
from edgewise.kernels.native.vector import (
    LANES,
    at_least,
    at_most,
    bits,
    splat,
    splat_i32,
    to_bytes,
)
from edgewise.kernels.native.walk import end_item, first_item, offset_2, row_span

FAR = np.float32(1e6)  # beyond any result, and exact in int32


@helper
def steps(x, scale):
    """``x / scale`` as a whole number, ties to even; 0 for NaN."""
    v = nearest_f32(x / scale)
    v = FAR if v > FAR else v
    v = -FAR if v < -FAR else v
    return np.int32(v) if v == v else np.int32(0)


@helper
def whole_bytes(v, least, most, zero):
    """Steps from a zero point as bytes, held between two floats: ties to even.

    So large a number as is added rounds to whole ones; NaN's low byte is 0.
    """
    return to_bytes(bits(at_most(at_least(v, least), most) + splat(ROUNDER)) + zero)


def _make_line(low, high):
    """``line(x, y, count, scale, zero)``: neighbours that share scale and zero."""

    @helper
    def line(x, y, count, scale, zero):
        by, whole = splat(scale), splat_i32(np.int32(zero))
        least, most = splat(np.float32(low - zero)), splat(np.float32(high - zero))
        for i in range(0, count, LANES):
            lanes = min(count - i, LANES)
            v = load_part(x + 4 * i, lanes) / by
            store_bytes_part(y + i, whole_bytes(v, least, most, whole), lanes)

    return line


def _make_long_line(pointer, low, high):
    """The same of 16 bits."""

    @helper
    def line(x, y, count, scale, zero):
        from_, to, whole = f32(x), pointer(y), np.int32(zero)
        for j in range(count):
            to[j] = min(max(steps(from_[j], scale) + whole, np.int32(low)), high)

    return line


def quantize(pointer, low, high):
    """A kernel that writes integers from ``low`` to ``high``."""
    size = 1 if high - low < 256 else 2
    line = _make_line(low, high) if size == 1 else _make_long_line(pointer, low, high)

    def kernel(args, begin, end, worker):
        inner, step_x, step = args[8], args[10], args[11]
        for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
            row, start, count = row_span(args, 4, item)
            at_x, at = offset_2(args, 4, row)
            x = f32(args[0] + 4 * (at_x + start * step_x))
            scale, zero = f32(args[1] + 4 * at), pointer(args[2] + size * at)
            to = args[3] + size * (row * inner + start)
            y = pointer(to)
            if step == 0 and step_x == 1:
                line(args[0] + 4 * (at_x + start), to, count, scale[0], zero[0])
            elif step == 0:
                s, z = scale[0], np.int32(zero[0])
                for j in range(count):
                    q = np.int32(steps(x[j], s) + z)
                    y[j] = min(max(q, np.int32(low)), np.int32(high))
            else:
                for j in range(count):
                    z = np.int32(zero[start + j])
                    q = np.int32(steps(x[j], scale[start + j]) + z)
                    y[j] = min(max(q, np.int32(low)), np.int32(high))
        return OK

    return kernel


def dequantize(pointer, size, real):
    """A kernel that computes in ``real``, in which differences are exact."""

    def kernel(args, begin, end, worker):
        inner, step_q, step = args[8], args[10], args[11]
        for item in range(first_item(args, 4, begin), end_item(args, 4, end)):
            row, start, count = row_span(args, 4, item)
            at_q, at = offset_2(args, 4, row)
            q = pointer(args[0] + size * (at_q + start * step_q))
            scale, zero = f32(args[1] + 4 * at), pointer(args[2] + size * at)
            y = f32(args[3] + 4 * (row * inner + start))
            if step == 0:
                s, z = real(scale[0]), np.int64(zero[0])
                for j in range(count):
                    y[j] = np.float32(real(np.int64(q[j]) - z) * s)
            else:
                for j in range(count):
                    k = start + j
                    moved = np.int64(q[j]) - np.int64(zero[k])
                    y[j] = np.float32(real(moved) * real(scale[k]))
        return OK

    return kernel


def byte_planes(args, begin, end, worker):
    """Numbers of 16 bits, the byte above and the one below apart.

    Words: x, above, below, size, elements a task, scale as float bits, zero point, the
    least number, what the byte above is moved by.
    """
    by, zero = splat(as_f32(args[5])), splat_i32(np.int32(args[6]))
    bottom = np.float32(args[7] - args[6])
    least, most = splat(bottom), splat(bottom + np.float32(65535.0))
    byte, moved = splat_i32(np.int32(8)), splat_i32(np.int32(args[8]))
    start, stop = begin * args[4], min(end * args[4], args[3])
    for i in range(start, stop, LANES):
        lanes = stop - i
        v = at_most(at_least(load_part(args[0] + 4 * i, lanes) / by, least), most)
        # So large a number rounds to whole ones; its last 16 bits, and NaN's, are 0.
        number = bits(v + splat(ROUNDER)) + zero
        store_bytes_part(args[1] + i, to_bytes((number >> byte) + moved), lanes)
        store_bytes_part(args[2] + i, to_bytes(number), lanes)
    return OK


EXPORTS = {
    "byte_planes": byte_planes,
    "quantize_i8": quantize(i8, -128, 127),
    "quantize_u8": quantize(u8, 0, 255),
    "quantize_i16": quantize(i16, -32768, 32767),
    "quantize_u16": quantize(u16, 0, 65535),
    "dequantize_i8": dequantize(i8, 1, np.float32),
    "dequantize_u8": dequantize(u8, 1, np.float32),
    "dequantize_i16": dequantize(i16, 2, np.float32),
    "dequantize_u16": dequantize(u16, 2, np.float32),
    "dequantize_i32": dequantize(i32, 4, np.float64),
}
