"""Sixteen numbers of few bits as float32: halves, bytes, half bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.abi import OK, helper
from edgewise.kernels.native.halves import load_halves
from edgewise.kernels.native.memory import load, load_at, load_bytes, shuffled, store
from edgewise.kernels.native.product import Panels
from edgewise.kernels.native.vector import (
    I32,
    LANES,
    f32x16,
    from_i8,
    splat,
    to_f32,
)

BLOCK, BUFFER = 10, 11  # words of the epilogue: indices that share scales; scratch
SCALES = 64  # bytes


@intrinsic
def load_nibbles(context, address):
    """Eight bytes: lane j is the low half of byte j, lane j + 8 its high half."""

    def generate(_, builder, __, args):
        raw = load_at(builder, args[0], ir.VectorType(ir.IntType(8), 8), align=1)
        kind = ir.VectorType(I32, 8)
        wide = builder.sext(raw, kind)

        def by(count: int):
            return ir.Constant(kind, [count] * 8)

        low = builder.ashr(builder.shl(wide, by(28)), by(28))
        both = shuffled(builder, low, builder.ashr(wide, by(4)), range(LANES))
        return builder.sitofp(both, f32x16.llvm)

    return f32x16(types.int64), generate


@helper
def load_signed(address):
    """Sixteen signed bytes."""
    return to_f32(from_i8(load_bytes(address)))


@helper
def _one(address):
    return splat(np.float32(1.0))


class Narrow(NamedTuple):
    """A kind of panels.

    Attributes:
        numbers: Loads those of one index.
        scale: Loads what they are times.
        width: Bytes of an index.
        header: Bytes of scales before the indices of a block.
    """

    numbers: Callable[..., object]
    scale: Callable[..., object]
    width: int
    header: int


KINDS = {
    "f16": Narrow(load_halves, _one, 32, 0),
    "i8": Narrow(load_signed, load, 16, SCALES),
    "i4": Narrow(load_nibbles, load, 8, SCALES),
}


def make_size(kind: Narrow):
    """``size(k, block)``: bytes of a panel."""
    width, header = kind.width, kind.header

    @helper
    def size(k, block):
        return header * -(-k // block) + width * k

    return size


def make_widen(kind: Narrow):
    """``widen(panel, block, begin, end, out)``: some indices of a panel as float32."""
    numbers, scale_of = kind.numbers, kind.scale
    width, header = kind.width, kind.header

    @helper
    def widen(panel, block, begin, end, out):
        index = begin
        while index < end:
            number = index // block
            start = panel + header * number
            until = min((number + 1) * block, end)
            scale = scale_of(start + width * number * block)
            start += header
            for i in range(index, until):
                store(out + 64 * (i - begin), numbers(start + width * i) * scale)
            index = until

    return widen


def make_vector(kind: Narrow):
    """``vector(panel, block, index)``: one index of a panel as float32."""
    numbers, scale_of = kind.numbers, kind.scale
    width, header = kind.width, kind.header

    @helper
    def vector(panel, block, index):
        number = index // block
        start = panel + header * number
        scale = scale_of(start + width * number * block)
        return numbers(start + header + width * index) * scale

    return vector


def make_panels(kind: Narrow) -> Panels:
    """How products read such panels: widened into the scratch of a worker."""
    size, widen = make_size(kind), make_widen(kind)

    @helper
    def place(args, at, panels, k, p):
        return panels + size(k, args[at + BLOCK]) * p

    @helper
    def lines(args, at, scratch, panel, begin, end):
        out = scratch + args[at + BUFFER]
        widen(panel, args[at + BLOCK], begin, end, out)
        return out - 64 * begin

    return Panels(place, lines)


def make_panels_kernel(kind: Narrow):
    """Panels as float32; a task is a panel.  Words: panels, out, K, block."""
    size, widen = make_size(kind), make_widen(kind)

    def panels(args, begin, end, worker):
        k, block = args[2], args[3]
        for panel in range(begin, end):
            source = args[0] + size(k, block) * panel
            widen(source, block, 0, k, args[1] + 64 * k * panel)
        return OK

    return panels


EXPORTS = {f"widen_{name}": make_panels_kernel(kind) for name, kind in KINDS.items()}
