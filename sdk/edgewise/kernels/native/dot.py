"""Sums of products of bytes: four bytes of a row by four of each of sixteen columns.

A lane holds four bytes.  All sums are exact: no step on the way can saturate or wrap,
but for the 32 bits of the sum itself.  x86 has no product of unsigned and signed bytes
into 32 bits before VNNI: ``pmaddubsw`` adds two of them in 16, which is exact where the
signed ones are from -64 to 63 (2 * 255 * 64 < 2**15); others are widened to 16 bits.
Sums of two such sums are exact too where of the four signed bytes in them the positive
ones add up to 128 at most, and the negative ones to -128 at least.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from edgewise.kernels.native.neon import group_of
from edgewise.kernels.native.tile import Sums
from edgewise.kernels.native.vector import I8, I32, LANES, call_llvm, i32x16

I16 = ir.IntType(16)
# Multiply-adds of x86, by bytes of the registers: bytes into 16 bits, those into 32.
_BYTES = {16: "llvm.x86.ssse3.pmadd.ub.sw.128", 32: "llvm.x86.avx2.pmadd.ub.sw"}
_WORDS = {16: "llvm.x86.sse2.pmadd.wd", 32: "llvm.x86.avx2.pmadd.wd"}


def join_bytes(context, builder, x, w, sums, *, signed: bool, narrow: bool):
    """``sums + x . w`` in every lane, for one or two of ``x`` and of ``w``.

    Args:
        context: Numba's, which knows the target.
        builder: LLVM's.
        x: Each sixteen lanes of four bytes of a row.
        w: Each sixteen lanes of four signed bytes.
        sums: Sixteen sums.
        signed: Whether the bytes of ``x`` are.
        narrow: Whether sums of all the products of two bytes side by side, of every
            ``x`` and ``w``, are known to fit 16 bits.
    """
    size = context.codegen().register
    dot = _narrow if narrow and not signed else partial(_wide, signed=signed)
    parts = [
        dot(builder, *([_part(builder, v, size, i) for v in vs] for vs in (x, w)), size)
        for i in range(4 * LANES // size)
    ]
    return builder.add(sums, _whole(builder, parts))


def _narrow(builder, x, w, size: int):
    pairs = ir.VectorType(I16, size // 2)
    bytes_ = ir.VectorType(I8, size)
    total = None
    for operands in zip(x, w, strict=True):
        parts = (builder.bitcast(operand, bytes_) for operand in operands)
        two = call_llvm(builder, _BYTES[size], pairs, *parts)
        total = two if total is None else builder.add(total, two)
    ones = ir.Constant(pairs, [1] * pairs.count)
    return call_llvm(builder, _WORDS[size], ir.VectorType(I32, size // 4), total, ones)


def _wide(builder, x, w, size: int, *, signed: bool):
    (x,), (w,) = x, w
    pairs, sums = ir.VectorType(I16, size // 2), ir.VectorType(I32, size // 4)
    eight = ir.Constant(pairs, [8] * pairs.count)
    x, w = builder.bitcast(x, pairs), builder.bitcast(w, pairs)
    right = builder.ashr(builder.shl(w, eight), eight), builder.ashr(w, eight)
    if signed:
        left = builder.ashr(builder.shl(x, eight), eight), builder.ashr(x, eight)
    else:
        low = ir.Constant(pairs, [255] * pairs.count)
        left = builder.and_(x, low), builder.lshr(x, eight)
    even, odd = (
        call_llvm(builder, _WORDS[size], sums, a, b)
        for a, b in zip(left, right, strict=True)
    )
    return builder.add(even, odd)


def _part(builder, value, size: int, number: int):
    """A register of the lanes of a vector."""
    count = size // 4
    lanes = _lanes(range(number * count, (number + 1) * count))
    return builder.shuffle_vector(value, value, lanes)


def _whole(builder, parts):
    while len(parts) > 1:
        lanes = _lanes(range(2 * parts[0].type.count))
        parts = [
            builder.shuffle_vector(low, high, lanes)
            for low, high in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def _lanes(numbers) -> ir.Constant:
    lanes = list(numbers)
    return ir.Constant(ir.VectorType(I32, len(lanes)), lanes)


def _sums(
    *, signed: bool, narrow: bool = False, rows: int = 6, at_once: int = 1
) -> Sums:
    join = partial(join_bytes, signed=signed, narrow=narrow)
    group = partial(group_of, signed=signed, narrow=narrow, paired=at_once > 1)
    return Sums(i32x16, I32, i32x16, 1, join, rows, at_once, group)


UNSIGNED, SIGNED = _sums(signed=False), _sums(signed=True)
NARROW = _sums(signed=False, narrow=True)
# Two products at once want registers for their weights: five rows, 1.25 times as fast.
PAIRED = _sums(signed=False, narrow=True, rows=5, at_once=2)
