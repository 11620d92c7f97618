"""The innermost loops of a depthwise convolution: a strip of pixels, half a vector.

A strip is ``PIXELS`` neighbours in a row of the output.  Half a vector at a time leaves
registers for all their sums and for a row of weights, so each input is loaded once for
all the taps over it.  Where inputs lie stands in a table of addresses, one for each
column under a row of the kernel; so a border costs what the inside costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.memory import load_at, store_at
from edgewise.kernels.native.vector import (
    F32,
    I8,
    I32,
    I64,
    f32x16,
    fused_multiply_add,
    hold_at_least,
    hold_at_most,
)

PIXELS = 7  # divides the widths that images of 224 pixels come down to
HALF = 8
ROUNDER = 1.5 * 2**23  # behind which the last bit of a float stands for 1
HALF_VECTOR = ir.VectorType(F32, HALF)


def _arguments(addresses: int, vectors: int):
    return (
        *(types.int64,) * 6,
        types.UniTuple(types.int64, addresses),
        types.UniTuple(f32x16, vectors),
        types.UniTuple(types.int64, 3),
    )


def _real(builder, address, offset, kind):
    """Channels ``offset`` bytes from the first one."""
    return load_at(builder, builder.add(address, offset), kind)


def _byte(*, signed: bool):
    def read(builder, address, offset, kind):
        """Channels of a byte each; ``offset`` counts as if they had four."""
        at = builder.add(address, builder.lshr(offset, _word(2)))
        whole = load_at(builder, at, ir.VectorType(I8, kind.count), align=1)
        wide = ir.VectorType(I32, kind.count)
        number = builder.sext(whole, wide) if signed else builder.zext(whole, wide)
        return builder.sitofp(number, kind)

    return read


class Strip(NamedTuple):
    """What a strip reads and writes.

    Attributes:
        read: Channels of a pixel.
        write: The sums: ``write(context, builder, sums, ending, limits)``.
        arguments: Types of all arguments of a strip.
    """

    read: Callable[..., ir.Value]
    write: Callable[..., None]
    arguments: tuple[types.Type, ...]


def make_strip(taps: int, stride: int, kind: Strip | None = None):
    """A function ``strip`` for kernels with rows of ``taps``, eight channels at a time.

    ``table`` holds for each of the ``rows`` of the kernel, ``pitch`` bytes apart, the
    addresses of the columns from the first one under the strip; eight channels lie
    ``offset`` bytes from there.  Weights of neighbouring taps are ``step`` bytes apart.
    ``ending`` is (output, bytes from pixel to pixel of it, addresses of scale and
    shift), ``limits`` the range of the output; for bytes there are also the address of
    what is added to the sums and the zero point.
    """
    kind = kind or REALS

    @intrinsic
    def strip(context, rows, table, pitch, weight, step, offset, ending, limits, shape):
        def generate(cg, builder, _, args):
            rows, table, pitch, weight, step, offset, ending, limits, _ = args

            def row(index, sums):
                line = builder.add(table, builder.mul(pitch, index))
                first = builder.mul(index, builder.mul(step, _word(taps)))
                first = builder.add(weight, first)
                across = [
                    load_at(
                        builder,
                        builder.add(first, builder.mul(step, _word(tap))),
                        HALF_VECTOR,
                    )
                    for tap in range(taps)
                ]
                sums = list(sums)
                for column in range((PIXELS - 1) * stride + taps):
                    entry = builder.add(line, _word(8 * column))
                    x = _input(builder, kind.read, entry, offset, HALF_VECTOR)
                    for tap in range(taps):
                        pixel, off = divmod(column - tap, stride)
                        if off == 0 and 0 <= pixel < PIXELS:
                            sums[pixel] = fused_multiply_add(
                                cg, builder, x, across[tap], sums[pixel]
                            )
                return sums

            kind.write(
                cg,
                builder,
                _repeat(builder, rows, row, _no_sums(HALF_VECTOR)),
                ending,
                limits,
            )
            return cg.get_dummy_value()

        return types.void(*kind.arguments), generate

    return strip


def make_any_strip(kind: Strip | None = None):
    """The same for any kernel, sixteen channels at a time.

    ``shape``: taps, then bytes of the table from pixel to pixel and from tap to tap.
    """
    kind = kind or REALS

    @intrinsic
    def any_strip(
        context, rows, table, pitch, weight, step, offset, ending, limits, shape
    ):
        def generate(cg, builder, _, args):
            rows, table, pitch, weight, step, offset, ending, limits, shape = args
            taps, stride, dilation = (builder.extract_value(shape, i) for i in range(3))
            places = [builder.mul(stride, _word(pixel)) for pixel in range(PIXELS)]

            def row(index, sums):
                line = builder.add(table, builder.mul(pitch, index))
                first = builder.mul(index, builder.mul(step, taps))
                first = builder.add(weight, first)

                def tap(number, sums):
                    at = builder.add(first, builder.mul(step, number))
                    w = load_at(builder, at, f32x16.llvm)
                    start = builder.add(line, builder.mul(dilation, number))
                    inputs = [
                        _input(
                            builder,
                            kind.read,
                            builder.add(start, place),
                            offset,
                            f32x16.llvm,
                        )
                        for place in places
                    ]
                    return [
                        fused_multiply_add(cg, builder, x, w, total)
                        for x, total in zip(inputs, sums, strict=True)
                    ]

                return _repeat(builder, taps, tap, sums)

            kind.write(
                cg,
                builder,
                _repeat(builder, rows, row, _no_sums(f32x16.llvm)),
                ending,
                limits,
            )
            return cg.get_dummy_value()

        return types.void(*kind.arguments), generate

    return any_strip


def _no_sums(kind):
    return [ir.Constant(kind, [0.0] * kind.count)] * PIXELS


def _word(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


def _input(builder, read, entry, offset, kind):
    """Channels of the pixel whose address stands at ``entry``."""
    return read(builder, load_at(builder, entry, I64, align=8), offset, kind)


def _store(context, builder, sums, ending, limits):
    out, pitch, scale, shift = _unpacked(builder, ending)
    kind = sums[0].type
    low, high = _fitting(builder, limits, kind)
    scale, shift = load_at(builder, scale, kind), load_at(builder, shift, kind)
    for pixel, total in enumerate(sums):
        y = fused_multiply_add(context, builder, total, scale, shift)
        y = hold_at_most(builder, hold_at_least(builder, y, low), high)
        store_at(builder, y, builder.add(out, builder.mul(pitch, _word(pixel))))


def _store_bytes(context, builder, sums, ending, limits):
    """As in ``requantize``; all in steps: ``limits`` are bottom, top, zero point."""
    out, pitch, *places = _unpacked(builder, ending)
    kind = sums[0].type
    scale, shift, centre = (load_at(builder, place, kind) for place in places)
    bottom, top, zero = _fitting(builder, limits, kind)
    whole = ir.VectorType(I32, kind.count)
    zero = builder.bitcast(zero, whole)
    rounder = ir.Constant(kind, [ROUNDER] * kind.count)
    for pixel, total in enumerate(sums):
        total = builder.fadd(total, centre)
        y = fused_multiply_add(context, builder, total, scale, shift)
        y = hold_at_least(builder, y, bottom)
        steps = builder.fadd(hold_at_most(builder, y, top), rounder)
        number = builder.add(builder.bitcast(steps, whole), zero)
        bytes_ = builder.trunc(number, ir.VectorType(I8, kind.count))
        place = builder.add(out, builder.mul(pitch, _word(pixel)))
        store_at(builder, bytes_, place, align=1)


def _unpacked(builder, value):
    return [builder.extract_value(value, i) for i in range(value.type.count)]


def _fitting(builder, limits, kind):
    """Vectors of sixteen equal lanes, as long as the sums."""
    vectors = _unpacked(builder, limits)
    if kind.count == HALF:
        return [_first_half(builder, vector) for vector in vectors]
    return vectors


REALS = Strip(_real, _store, _arguments(4, 2))
UNSIGNED = Strip(_byte(signed=False), _store_bytes, _arguments(5, 3))
SIGNED = Strip(_byte(signed=True), _store_bytes, _arguments(5, 3))
UNSIGNED_SUMS = UNSIGNED._replace(write=_store, arguments=REALS.arguments)
SIGNED_SUMS = SIGNED._replace(write=_store, arguments=REALS.arguments)


def _first_half(builder, whole):
    lanes = ir.Constant(ir.VectorType(I32, HALF), list(range(HALF)))
    return builder.shuffle_vector(whole, whole, lanes)


def _repeat(builder, count, body, sums):
    """``sums`` after ``body(index, sums)`` for every index below ``count``."""
    before = builder.block
    head, inside, done = (
        builder.function.append_basic_block(f"strip.{name}")
        for name in ("head", "inside", "done")
    )
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(I64)
    index.add_incoming(_word(0), before)
    phis = [builder.phi(start.type) for start in sums]
    for phi, start in zip(phis, sums, strict=True):
        phi.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, count), inside, done)
    builder.position_at_end(inside)
    current = body(index, phis)
    end = builder.block
    index.add_incoming(builder.add(index, _word(1)), end)
    for phi, value in zip(phis, current, strict=True):
        phi.add_incoming(value, end)
    builder.branch(head)
    builder.position_at_end(done)
    return phis
