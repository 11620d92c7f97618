"""Vectors to and from memory, whole or only their first lanes."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.vector import (
    I32,
    I64,
    LANES,
    Vector,
    call_llvm,
    constant,
    f32x16,
    i8x16,
    i32x16,
)


def address_as(builder, address, kind: ir.Type, offset: int = 0):
    """The 64-bit ``address`` plus ``offset`` bytes, as a pointer to ``kind``."""
    if offset:
        address = builder.add(address, ir.Constant(I64, offset))
    return builder.inttoptr(address, kind.as_pointer())


def load_at(builder, address, kind: ir.Type, offset: int = 0, align: int = 4):
    """A value of ``kind`` from memory that is aligned to its elements only."""
    value = builder.load(address_as(builder, address, kind, offset))
    value.align = align
    return value


def store_at(builder, value, address, offset: int = 0, align: int = 4):
    """Write ``value`` to memory that is aligned to its elements only."""
    pointer = address_as(builder, address, value.type, offset)
    builder.store(value, pointer).align = align


def _size(vector: Vector) -> int:
    """Bytes of an element."""
    return 1 if vector is i8x16 else 4


def _load(vector: Vector):
    @intrinsic
    def load(context, address):
        def generate(_, builder, __, args):
            return load_at(builder, args[0], vector.llvm, align=_size(vector))

        return vector(types.int64), generate

    return load


def _store(vector: Vector):
    @intrinsic
    def store(context, address, value):
        def generate(cg, builder, _, args):
            store_at(builder, args[1], args[0], align=_size(vector))
            return cg.get_dummy_value()

        return types.void(types.int64, vector), generate

    return store


def prefetch_at(builder, address, locality: int = 2):
    """Ask for the cache line at ``address``; 3 is the nearest cache, 2 the next."""
    constants = (ir.Constant(I32, value) for value in (0, locality, 1))
    pointer = builder.inttoptr(address, ir.IntType(8).as_pointer())
    call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, *constants)


@intrinsic
def prefetch(context, address):
    """Ask for a cache line that is read soon; any address will do."""

    def generate(cg, builder, _, args):
        prefetch_at(builder, args[0])
        return cg.get_dummy_value()

    return types.void(types.int64), generate


def shuffled(builder, first, second, lanes):
    """The ``lanes`` of two vectors, numbered through, as one."""
    return builder.shuffle_vector(
        first, second, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
    )


def _has(builder, n, size):
    bit = builder.and_(n, ir.Constant(I64, size))
    return builder.icmp_signed("!=", bit, ir.Constant(I64, 0))


def _load_part(vector: Vector):
    """Pieces of 1, 2, 4 and 8 lanes from the end to the front; other lanes are zero.

    Masked loads would do, but NEON has none and AMD runs them in microcode.
    """

    @intrinsic
    def load(context, address, n):
        def generate(_, builder, __, args):
            address, n = args
            whole = builder.icmp_signed(">=", n, ir.Constant(I64, LANES))
            with builder.if_else(whole) as (full, partial):
                with full:
                    all_lanes = load_at(
                        builder, address, vector.llvm, align=_size(vector)
                    )
                    full_block = builder.block
                with partial:
                    some_lanes = _gather_pieces(builder, vector, address, n)
                    partial_block = builder.block
            result = builder.phi(vector.llvm)
            result.add_incoming(all_lanes, full_block)
            result.add_incoming(some_lanes, partial_block)
            return result

        return vector(types.int64, types.int64), generate

    return load


def _gather_pieces(builder, vector, address, n):
    value, each = constant(vector, 0), _size(vector)
    end = builder.add(address, builder.mul(n, ir.Constant(I64, each)))
    for size in (1, 2, 4, 8):
        before, has = builder.block, _has(builder, n, size)
        with builder.if_then(has):
            start = builder.sub(end, ir.Constant(I64, each * size))
            kind = ir.VectorType(vector.element, size)
            piece = load_at(builder, start, kind, align=each)
            wide = shuffled(
                builder, piece, piece, [min(i, size - 1) for i in range(LANES)]
            )
            lanes = [*range(size), *range(LANES, 2 * LANES - size)]
            shifted = shuffled(builder, wide, value, lanes)
            inside = builder.block
        merged, moved = builder.phi(vector.llvm), builder.phi(I64)
        merged.add_incoming(value, before)
        merged.add_incoming(shifted, inside)
        moved.add_incoming(end, before)
        moved.add_incoming(start, inside)
        value, end = merged, moved
    return value


def _store_part(vector: Vector):
    @intrinsic
    def store(context, address, value, n):
        def generate(cg, builder, _, args):
            address, value, n = args
            whole = builder.icmp_signed(">=", n, ir.Constant(I64, LANES))
            with builder.if_else(whole) as (full, partial):
                with full:
                    store_at(builder, value, address, align=_size(vector))
                with partial:
                    _scatter_pieces(builder, vector, address, value, n)
            return cg.get_dummy_value()

        return types.void(types.int64, vector, types.int64), generate

    return store


def _scatter_pieces(builder, vector, address, value, n):
    for size in (8, 4, 2, 1):
        before, has = builder.block, _has(builder, n, size)
        with builder.if_then(has):
            piece = shuffled(builder, value, value, list(range(size)))
            store_at(builder, piece, address, align=_size(vector))
            rest = [min(i + size, LANES - 1) for i in range(LANES)]
            shifted = shuffled(builder, value, value, rest)
            further = builder.add(address, ir.Constant(I64, _size(vector) * size))
            inside = builder.block
        merged, moved = builder.phi(vector.llvm), builder.phi(I64)
        merged.add_incoming(value, before)
        merged.add_incoming(shifted, inside)
        moved.add_incoming(address, before)
        moved.add_incoming(further, inside)
        value, address = merged, moved


load, load_i32, load_bytes = map(_load, (f32x16, i32x16, i8x16))
store, store_i32, store_bytes = map(_store, (f32x16, i32x16, i8x16))
load_part, load_part_i32, load_bytes_part = map(_load_part, (f32x16, i32x16, i8x16))
store_part, store_part_i32, store_bytes_part = map(_store_part, (f32x16, i32x16, i8x16))
