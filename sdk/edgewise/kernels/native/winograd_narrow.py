"""Weights of few bits, transformed for minimal filtering as those of float32 are."""

from __future__ import annotations

from edgewise.kernels.native.abi import OK
from edgewise.kernels.native.memory import store
from edgewise.kernels.native.transform import TAPS, make_lines, matrices
from edgewise.kernels.native.widen import KINDS, Narrow, make_size, make_vector


def make_weights(size: int, kind: Narrow):
    """A task is a panel.  Words: panels, result, channels, block.

    As ``winograd.make``; a column of taps is widened into the first column of the
    result, which is written last.
    """
    side = size + TAPS - 1
    lines = make_lines(matrices(size).weights)
    size_of, vector = make_size(kind), make_vector(kind)

    def weights(args, begin, end, worker):
        channels, block = args[2], args[3]
        right, down = 64 * channels, 64 * channels * side
        for panel in range(begin, end):
            source = args[0] + size_of(TAPS * TAPS * channels, block) * panel
            for channel in range(channels):
                target = args[1] + 64 * (side * side * channels * panel + channel)
                half = target + right * (side - TAPS)
                for j in range(TAPS):
                    for i in range(TAPS):
                        index = (TAPS * i + j) * channels + channel
                        store(target + down * i, vector(source, block, index))
                    lines(target, down, half + right * j, down)
                for i in range(side):
                    lines(half + down * i, right, target + down * i, right)
        return OK

    return weights


EXPORTS = {
    f"winograd{size}_weights_{name}": make_weights(size, kind)
    for size in (2, 4)
    for name, kind in KINDS.items()
}
