"""Gradients of pools of channels-last images of float32.

Words: x or 0, dy, out, images, H, W, C, output H, output W, kernel, strides, top and
left pads, dilations (two words each), whether the border counts.  A task is sixteen
channels of one image, whose gradient is zeros at first: windows overlap, and no two
tasks may add to one place.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, helper
from edgewise.kernels.native.memory import load_part, store_part
from edgewise.kernels.native.pool import end_tap, first_tap
from edgewise.kernels.native.vector import is_nan, select, splat

LANES = 16


@helper
def _clear(args, image, column, lanes):
    for pixel in range(args[4] * args[5]):
        at = args[2] + 4 * ((image * args[4] * args[5] + pixel) * args[6] + column)
        store_part(at, splat(0.0), lanes)


@helper
def _pixel(args, image, y, x, column):
    """Elements from the first of an image to one place of it."""
    return ((image * args[4] + y) * args[5] + x) * args[6] + column


@helper
def _order(v):
    """What the pool compares: NaN is larger than all."""
    return select(is_nan(v), splat(np.float32(np.inf)), v)


def pool_grad(average):
    """A kernel for means, or for the largest."""

    def kernel(args, begin, end, worker):
        columns = -(-args[6] // LANES)
        for task in range(begin, end):
            image, column = task // columns, task % columns * LANES
            lanes = min(args[6] - column, LANES)
            _clear(args, image, column, lanes)
            for row in range(args[7]):
                y = row * args[11] - args[13]
                r0 = first_tap(y, args[15])
                r1 = end_tap(y, args[15], args[9], args[4])
                for i in range(args[8]):
                    x = i * args[12] - args[14]
                    s0 = first_tap(x, args[16])
                    s1 = end_tap(x, args[16], args[10], args[5])
                    at = (image * args[7] + row) * args[8] + i
                    grad = load_part(args[1] + 4 * (at * args[6] + column), lanes)
                    count = max((r1 - r0) * (s1 - s0), 1)
                    if args[17] != 0:
                        count = args[9] * args[10]
                    if average:
                        grad = grad / splat(np.float32(count))
                    best = splat(np.float32(-np.inf))
                    if not average:
                        for r in range(r0, r1):
                            for s in range(s0, s1):
                                place = _pixel(
                                    args,
                                    image,
                                    y + r * args[15],
                                    x + s * args[16],
                                    column,
                                )
                                v = _order(load_part(args[0] + 4 * place, lanes))
                                best = select(v > best, v, best)
                    left = grad
                    for r in range(r0, r1):
                        for s in range(s0, s1):
                            place = 4 * _pixel(
                                args, image, y + r * args[15], x + s * args[16], column
                            )
                            total = load_part(args[2] + place, lanes)
                            if average:
                                total = total + grad
                            else:
                                v = _order(load_part(args[0] + place, lanes))
                                won = v >= best
                                total = total + select(won, left, splat(0.0))
                                # The first that is the largest has it all.
                                left = select(won, splat(0.0), left)
                            store_part(args[2] + place, total, lanes)
        return OK

    return kernel


EXPORTS = {
    "max_pool_grad_f32": pool_grad(average=False),
    "average_pool_grad_f32": pool_grad(average=True),
}
