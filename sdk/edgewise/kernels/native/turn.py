"""Blocks of a matrix of four-byte elements, turned in registers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at, shuffled, store_at
from edgewise.kernels.native.vector import I32

SIDE = 8
EIGHT = ir.VectorType(I32, SIDE)
# Shuffles that AVX has within its halves, and NEON within its registers: elements of
# two rows in turn, pairs of two rows in turn, halves of two rows.
SINGLES = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
HALVES = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


@intrinsic
def turn_block(context, x, step_x, y, step_y):
    """Write eight columns of eight rows at ``x`` as rows at ``y``; steps are bytes."""

    def generate(cg, builder, _, args):
        x, step_x, y, step_y = args
        rows = []
        for _row in range(SIDE):
            rows.append(load_at(builder, x, EIGHT))
            x = builder.add(x, step_x)
        for row in _turned(builder, rows):
            store_at(builder, row, y)
            y = builder.add(y, step_y)
        return cg.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


def _turned(builder, rows):
    """The columns of eight rows."""
    first = [_mixed(builder, rows[i], rows[i + 1], SINGLES) for i in range(0, 8, 2)]
    second = []
    for a, b in ((first[0], first[1]), (first[2], first[3])):
        mixed = [_mixed(builder, p, q, PAIRS) for p, q in zip(a, b, strict=True)]
        second.append([*mixed[0], *mixed[1]])
    pairs = zip(*second, strict=True)
    whole = [_mixed(builder, a, b, HALVES) for a, b in pairs]
    return [low for low, _ in whole] + [high for _, high in whole]


def _mixed(builder, a, b, lanes):
    return [shuffled(builder, a, b, some) for some in lanes]


def make_interleave(count: int, lanes: int):
    """``interleave(x, step, y)``: ``lanes`` elements of ``count`` rows, in turn."""

    @intrinsic
    def interleave(context, x, step, y):
        def generate(cg, builder, _, args):
            x, step, y = args
            rows = []
            for _row in range(count):
                rows.append(load_at(builder, x, ir.VectorType(I32, lanes)))
                x = builder.add(x, step)
            for place, row in enumerate(_in_turn(builder, rows, lanes)):
                store_at(builder, row, y, 4 * lanes * place)
            return cg.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return interleave


def _in_turn(builder, rows, lanes):
    """``rows`` element by element, as as many vectors."""
    wide, width = rows[0], lanes
    for row in rows[1:]:
        longer = [*range(lanes), *[lanes] * (width - lanes)]
        padded = shuffled(builder, row, row, longer) if width > lanes else row
        wide = shuffled(builder, wide, padded, range(width + lanes))
        width += lanes
    count = len(rows)
    order = [lanes * (i % count) + i // count for i in range(width)]
    return [
        shuffled(builder, wide, wide, order[at : at + lanes])
        for at in range(0, width, lanes)
    ]
