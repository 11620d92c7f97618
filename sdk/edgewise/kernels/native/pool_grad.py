"""Gradients of pools of channels-last images of float32.

Words: x or 0, dy, out, images, H, W, C, output H, output W, kernel, strides, top and
left pads, dilations (two words each), whether the border counts, channels a task,
whether windows tile the image.  A task is some channels of one image: windows overlap,
and no two tasks may add to one place.  Where they tile it nothing is added: every place
is written once.
"""

from __future__ import annotations

import numpy as np

from edgewise.kernels.native.abi import OK, helper
from edgewise.kernels.native.memory import load_part, store_part
from edgewise.kernels.native.pool import end_tap, first_tap
from edgewise.kernels.native.vector import is_nan, select, splat

LANES = 16


@helper
def _clear(args, image, first, last):
    for pixel in range(args[4] * args[5]):
        at = args[2] + 4 * (image * args[4] * args[5] + pixel) * args[6]
        for c in range(first, last, LANES):
            store_part(at + 4 * c, splat(0.0), last - c)


@helper
def _order(v):
    """What the pool compares: NaN is larger than all."""
    return select(is_nan(v), splat(np.float32(np.inf)), v)


@helper
def _give(args, place, share, lanes):
    """A share of the gradient to one place: added, or all there is."""
    if args[19] == 0:
        share = load_part(place, lanes) + share
    store_part(place, share, lanes)


@helper
def _to_all(args, corner, span, place, grad, lanes):
    """To all elements of a window; ``place`` is the offset of sixteen channels."""
    r0, r1, s0, s1 = span
    step, count = 4 * args[6], max((r1 - r0) * (s1 - s0), 1)
    if args[17] != 0:
        count = args[9] * args[10]
    share = grad / splat(np.float32(count))
    for r in range(r0, r1):
        for s in range(s0, s1):
            at = (corner + r * args[15] * args[5] + s * args[16]) * step + place
            _give(args, args[2] + at, share, lanes)


@helper
def _to_largest(args, corner, span, place, grad, lanes):
    """To the first of the largest elements of a window: it has it all."""
    r0, r1, s0, s1 = span
    step, best = 4 * args[6], splat(np.float32(-np.inf))
    for r in range(r0, r1):
        for s in range(s0, s1):
            at = (corner + r * args[15] * args[5] + s * args[16]) * step + place
            v = _order(load_part(args[0] + at, lanes))
            best = select(v > best, v, best)
    left = grad
    for r in range(r0, r1):
        for s in range(s0, s1):
            at = (corner + r * args[15] * args[5] + s * args[16]) * step + place
            won = _order(load_part(args[0] + at, lanes)) >= best
            _give(args, args[2] + at, select(won, left, splat(0.0)), lanes)
            left = select(won, splat(0.0), left)


def pool_grad(give):
    """A kernel for means, or for the largest."""

    @helper
    def run(args, image, first, last):
        height, width = args[4], args[5]
        for row in range(args[7]):
            y = row * args[11] - args[13]
            r0, r1 = first_tap(y, args[15]), end_tap(y, args[15], args[9], height)
            for i in range(args[8]):
                x = i * args[12] - args[14]
                s0, s1 = first_tap(x, args[16]), end_tap(x, args[16], args[10], width)
                corner = (image * height + y) * width + x
                dy = args[1] + 4 * ((image * args[7] + row) * args[8] + i) * args[6]
                for c in range(first, last, LANES):
                    grad = load_part(dy + 4 * c, last - c)
                    give(args, corner, (r0, r1, s0, s1), 4 * c, grad, last - c)

    def kernel(args, begin, end, worker):
        columns = -(-args[6] // args[18])
        for task in range(begin, end):
            image, first = task // columns, task % columns * args[18]
            last = min(first + args[18], args[6])
            if args[19] == 0:
                _clear(args, image, first, last)
            run(args, image, first, last)
        return OK

    return kernel


EXPORTS = {
    "max_pool_grad_f32": pool_grad(_to_largest),
    "average_pool_grad_f32": pool_grad(_to_all),
}
