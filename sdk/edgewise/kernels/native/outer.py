"""The innermost loop of a weight gradient: sums over pixels, kept in registers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at
from edgewise.kernels.native.vector import (
    F32,
    I64,
    f32x16,
    fused_multiply_add,
    splat_lanes,
)

UNROLL = 4


def make_outer(rows: int):
    """``outer(count, a, a_step, b, b_step, sums)``: add ``count`` outer products.

    ``a`` holds the address of a number for each row, ``b`` is that of sixteen numbers;
    both move by their steps, in bytes, from one product to the next.
    """
    sums_type = types.UniTuple(f32x16, rows)
    rows_type = types.UniTuple(types.int64, rows)
    word = types.int64
    arguments = (word, rows_type, word, word, word, sums_type)

    @intrinsic
    def outer(context, count, a, a_step, b, b_step, sums):
        def generate(cg, builder, _, args):
            count, a, a_step, b, b_step, sums = args
            a = [builder.extract_value(a, row) for row in range(rows)]
            sums = [builder.extract_value(sums, row) for row in range(rows)]
            steps = (a_step, b_step)
            start = [ir.Constant(I64, 0)] * 3
            whole = builder.and_(count, ir.Constant(I64, -UNROLL))
            at, sums = _loop(cg, builder, start, whole, a, b, steps, sums, UNROLL)
            _, sums = _loop(cg, builder, at, count, a, b, steps, sums, 1)
            return cg.make_tuple(builder, sums_type, sums)

        return sums_type(*arguments), generate

    return outer


def _loop(context, builder, start, end, a, b, steps, sums, unroll):
    """Products up to ``end``, ``unroll`` at a time; where it stopped, and the sums."""
    before = builder.block
    head, body, done = (
        builder.function.append_basic_block(f"outer.{name}")
        for name in ("head", "body", "done")
    )
    builder.branch(head)
    builder.position_at_end(head)
    at = [builder.phi(I64) for _ in start]  # products done, bytes of a, bytes of b
    phis = [builder.phi(f32x16.llvm) for _ in sums]
    for phi, value in zip([*at, *phis], [*start, *sums], strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed("<", at[0], end), body, done)
    builder.position_at_end(body)
    current, a_at, b_at = list(phis), at[1], at[2]
    for _ in range(unroll):
        right = load_at(builder, builder.add(b, b_at), f32x16.llvm)
        for row, base in enumerate(a):
            number = load_at(builder, builder.add(base, a_at), F32)
            left = splat_lanes(builder, number, f32x16)
            current[row] = fused_multiply_add(
                context, builder, left, right, current[row]
            )
        a_at, b_at = builder.add(a_at, steps[0]), builder.add(b_at, steps[1])
    count = builder.add(at[0], ir.Constant(I64, unroll))
    for phi, value in zip([*at, *phis], [count, a_at, b_at, *current], strict=True):
        phi.add_incoming(value, body)
    builder.branch(head)
    builder.position_at_end(done)
    return at, phis
