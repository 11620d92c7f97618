"""Which native functions serve quantisation."""

from __future__ import annotations

import math

from edgewise.kernels.catalog.base import (
    Binding,
    Call,
    In,
    Launch,
    Out,
    Word,
    blocks,
    f32_word,
    kernel,
)
from edgewise.kernels.catalog.calls import F32, given, integer, real
from edgewise.kernels.catalog.strides import BLOCK, contiguous, walk
from edgewise.types import DType

SMALL = {DType.I8: "i8", DType.U8: "u8", DType.I16: "i16", DType.U16: "u16"}


def _spread(call: Call, symbol: str) -> Binding | None:
    dims = given(call, 0).dims
    if integer(call, "block"):
        return None
    along = [0] * len(dims)
    if given(call, 1).rank:
        along[integer(call, "axis")] = 1
    path = walk(dims, contiguous(dims), tuple(along))
    if path is None:
        return None
    words: tuple[Word, ...] = (In(0), In(1), In(2), Out(0), *path.words)
    return Binding((Launch(symbol, words, path.tasks),))


@kernel("quantize", *(f"quantize_{name}" for name in SMALL.values()))
def bind_quantize(call: Call) -> Binding | None:
    """To 8 and 16 bits."""
    name = SMALL.get(call.outputs[0].dtype)
    if name is None or given(call, 0).dtype is not F32:
        return None
    return _spread(call, f"quantize_{name}")


KINDS = {**SMALL, DType.I32: "i32"}


@kernel("dequantize", *(f"dequantize_{name}" for name in KINDS.values()))
def bind_dequantize(call: Call) -> Binding | None:
    """From those and from sums."""
    name = KINDS.get(given(call, 0).dtype)
    if name is None or call.outputs[0].dtype is not F32:
        return None
    return _spread(call, f"dequantize_{name}")


@kernel("byte_planes", "byte_planes")
def bind_byte_planes(call: Call) -> Binding | None:
    """To 16 bits, as two bytes."""
    if given(call, 0).dtype is not F32:
        return None
    size = math.prod(given(call, 0).dims)
    pair = f32_word(real(call, "scale")), integer(call, "zero")
    words: tuple[Word, ...] = (In(0), Out(0), Out(1), size, BLOCK, *pair, -32768, 128)
    return Binding((Launch("byte_planes", words, blocks(size, BLOCK)),))
