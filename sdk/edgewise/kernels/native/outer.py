"""The innermost loop of a weight gradient: sums over pixels, kept in registers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at
from edgewise.kernels.native.vector import (
    F32,
    I64,
    LANES,
    f32x16,
    fused_multiply_add,
    splat_lanes,
)

UNROLL = 4


def make_outer(rows: int):
    """``outer(count, places, a, b, sums)``: add ``count`` outer products.

    ``a`` holds the address of a number for each row, to which each product adds its
    own of the 64-bit words at ``places``; ``b`` is that of sixteen numbers for each.
    """
    sums_type = types.UniTuple(f32x16, rows)
    rows_type = types.UniTuple(types.int64, rows)
    word = types.int64
    arguments = (word, word, rows_type, word, sums_type)

    @intrinsic
    def outer(context, count, places, a, b, sums):
        def generate(cg, builder, _, args):
            count, places, a, b, sums = args
            a = [builder.extract_value(a, row) for row in range(rows)]
            sums = [builder.extract_value(sums, row) for row in range(rows)]
            start, both = ir.Constant(I64, 0), (places, b)
            whole = builder.and_(count, ir.Constant(I64, -UNROLL))
            at, sums = _loop(cg, builder, start, whole, a, both, sums, UNROLL)
            _, sums = _loop(cg, builder, at, count, a, both, sums, 1)
            return cg.make_tuple(builder, sums_type, sums)

        return sums_type(*arguments), generate

    return outer


def _loop(context, builder, start, end, a, both, sums, unroll):
    """Products up to ``end``, ``unroll`` at a time; where it stopped, and the sums."""
    before, (places, b) = builder.block, both
    head, body, done = (
        builder.function.append_basic_block(f"outer.{name}")
        for name in ("head", "body", "done")
    )
    builder.branch(head)
    builder.position_at_end(head)
    at = builder.phi(I64)
    phis = [builder.phi(f32x16.llvm) for _ in sums]
    for phi, value in zip([at, *phis], [start, *sums], strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed("<", at, end), body, done)
    builder.position_at_end(body)
    current = list(phis)
    place = builder.add(places, builder.mul(at, ir.Constant(I64, 8)))
    right_at = builder.add(b, builder.mul(at, ir.Constant(I64, 4 * LANES)))
    for number in range(unroll):
        moved = load_at(builder, place, I64, 8 * number, align=8)
        right = load_at(builder, right_at, f32x16.llvm, 4 * LANES * number)
        for row, base in enumerate(a):
            found = load_at(builder, builder.add(base, moved), F32)
            left = splat_lanes(builder, found, f32x16)
            current[row] = fused_multiply_add(
                context, builder, left, right, current[row]
            )
    count = builder.add(at, ir.Constant(I64, unroll))
    for phi, value in zip([at, *phis], [count, *current], strict=True):
        phi.add_incoming(value, body)
    builder.branch(head)
    builder.position_at_end(done)
    return at, phis
