"""Halves as float32: exact, with what is not a number kept.

x86 has an instruction for it since F16C and ARM always had; before, LLVM would call a
library, so that numbers are put together from their bits.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at
from edgewise.kernels.native.vector import F32, I32, LANES, f32x16

I16, HALF = ir.IntType(16), ir.HalfType()
SSE = 16  # bytes of the registers of an x86 that has no F16C


def _many(kind: ir.Type, lanes: int) -> ir.Type:
    return ir.VectorType(kind, lanes) if lanes > 1 else kind


def _make_load(result, lanes: int):
    @intrinsic
    def load(context, address):
        def generate(cg, builder, _, args):
            many = partial(_many, lanes=lanes)
            if getattr(cg.codegen(), "register", 0) != SSE:
                half = load_at(builder, args[0], many(HALF), align=2)
                return builder.fpext(half, many(F32))
            bits = load_at(builder, args[0], many(I16), align=2)
            return _from_bits(builder, builder.zext(bits, many(I32)), lanes)

        return result(types.int64), generate

    return load


def _from_bits(builder, bits, lanes: int):
    """Exponent and fraction of a half, moved into place, are the number by 2^-112."""

    def whole(value: int):
        return ir.Constant(bits.type, [value] * lanes if lanes > 1 else value)

    real = _many(F32, lanes)
    factor = ir.Constant(real, [2.0**112] * lanes if lanes > 1 else 2.0**112)
    sign = builder.shl(builder.and_(bits, whole(0x8000)), whole(16))
    rest = builder.and_(bits, whole(0x7FFF))
    moved = builder.bitcast(builder.shl(rest, whole(13)), real)
    number = builder.bitcast(builder.fmul(moved, factor), bits.type)
    special = builder.icmp_signed(">=", rest, whole(0x7C00))
    number = builder.select(special, builder.or_(number, whole(0x7F800000)), number)
    return builder.bitcast(builder.or_(number, sign), real)


load_halves = _make_load(f32x16, LANES)
load_half = _make_load(types.float32, 1)
