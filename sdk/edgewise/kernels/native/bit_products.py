"""Products of signs: as over reals, a word of 32 signs in place of a number.

Sums count the bits in which words differ.  The bits of bytes are counted, those of
four words together, before they are added up to words: 32 fit a byte.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.abi import OK, helper, i32
from edgewise.kernels.native.conv import make_conv
from edgewise.kernels.native.matmul import make_product
from edgewise.kernels.native.memory import load, load_part
from edgewise.kernels.native.product import ROWS, make_multiply
from edgewise.kernels.native.requantize import REQUANTIZED
from edgewise.kernels.native.tile import Sums
from edgewise.kernels.native.vector import (
    I8,
    I32,
    LANES,
    call_llvm,
    constant,
    i32x16,
    mask16,
    splat,
)

_BYTES = ir.VectorType(I8, 4 * LANES)
AT_ONCE = 4


def _join(context, builder, x, w, sums):
    """``sums`` and the bits that differ in every lane of the words."""
    total = None
    for left, right in zip(x, w, strict=True):
        unequal = builder.bitcast(builder.xor(left, right), _BYTES)
        count = call_llvm(builder, "llvm.ctpop.v64i8", _BYTES, unequal)
        total = count if total is None else builder.add(total, count)
    pairs = _halved(builder, builder.bitcast(total, i32x16.llvm), 8, 0x00FF00FF)
    return builder.add(sums, _halved(builder, pairs, 16, 0x0000FFFF))


def _halved(builder, value, width: int, low: int):
    """Neighbours of ``width`` bits added up."""
    mask = constant(i32x16, low)
    high = builder.lshr(value, constant(i32x16, width))
    return builder.add(builder.and_(value, mask), builder.and_(high, mask))


SIGNS = Sums(i32x16, I32, i32x16, 4, _join, ROWS, AT_ONCE)


@intrinsic
def _as_bits(context, mask):
    """A bit of each lane, the first the lowest."""

    def generate(_, builder, __, args):
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.zext(bits, I32)

    return types.int32(mask16), generate


@helper
def _negative(x):
    return _as_bits(~(x >= splat(0.0)))


def sign_bits(args, begin, end, worker):
    """Signs of rows.  Words: x, words, rows, numbers and words a row, rows a task."""
    rows, channels, words, block = args[2], args[3], args[4], args[5]
    whole = channels // (2 * LANES)
    for row in range(begin * block, min(end * block, rows)):
        x, out = args[0] + 4 * channels * row, i32(args[1] + 4 * words * row)
        for word in range(whole):
            at = x + 128 * word
            out[word] = _negative(load(at)) | (_negative(load(at + 64)) << LANES)
        left = channels - 2 * LANES * whole
        if left:
            at = x + 128 * whole
            bits = _negative(load_part(at, min(left, LANES)))
            if left > LANES:
                bits |= _negative(load_part(at + 64, left - LANES)) << LANES
            out[whole] = bits
    return OK


EXPORTS = {
    "product_bits": make_product(SIGNS, REQUANTIZED),
    "conv_bits": make_conv(make_multiply(SIGNS, REQUANTIZED), SIGNS.rows),
    "sign_bits": sign_bits,
}
