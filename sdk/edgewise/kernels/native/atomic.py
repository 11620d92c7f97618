"""What the executor needs beside Numba: atomics, indirect calls, system calls."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgewise.kernels.native.vector import I32, I64, call_llvm

VOID = ir.VoidType()


def _at(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def _word(size: int):
    """Acquire load, release store and counting of words of ``size`` bytes."""
    kind, typed = ir.IntType(8 * size), getattr(types, f"int{8 * size}")

    @intrinsic
    def load(context, address):
        def generate(_, builder, __, args):
            return builder.load_atomic(_at(builder, args[0], kind), "acquire", size)

        return typed(types.int64), generate

    @intrinsic
    def store(context, address, value):
        def generate(cg, builder, _, args):
            pointer = _at(builder, args[0], kind)
            builder.store_atomic(args[1], pointer, "release", size)
            return cg.get_dummy_value()

        return types.void(types.int64, typed), generate

    @intrinsic
    def add(context, address, value):
        def generate(_, builder, __, args):
            pointer = _at(builder, args[0], kind)
            return builder.atomic_rmw("add", pointer, args[1], "seq_cst")

        return typed(types.int64, typed), generate

    return load, store, add


load32, store32, add32 = _word(4)
load64, store64, add64 = _word(8)


@intrinsic
def keep_smaller(context, address, value):
    """Lower the word at ``address`` to ``value`` where that is less."""

    def generate(cg, builder, _, args):
        builder.atomic_rmw("min", _at(builder, args[0], I64), args[1], "seq_cst")
        return cg.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def replace(context, address, expected, value):
    """Write ``value`` if the word still is ``expected``; whether it was."""

    def generate(_, builder, __, args):
        pointer = _at(builder, args[0], I64)
        pair = builder.cmpxchg(pointer, args[1], args[2], "seq_cst", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic
def fence(context):
    """Order everything before against everything after, on every processor."""

    def generate(cg, builder, _, args):
        builder.fence("seq_cst")
        return cg.get_dummy_value()

    return types.void(), generate


@intrinsic
def pause(context):
    """Tell the core that it spins.

    An LLVM intrinsic: inline assembly would need a parser, which llvmlite has for its
    own processor only.
    """

    def generate(cg, builder, _, args):
        if builder.module.triple.startswith("aarch64"):
            call_llvm(builder, "llvm.aarch64.isb", VOID, ir.Constant(I32, 15))
        else:
            call_llvm(builder, "llvm.x86.sse2.pause", VOID)
        return cg.get_dummy_value()

    return types.void(), generate


@intrinsic
def call_kernel(context, function, words, begin, end, worker):
    """Call a kernel by its address; see ``kernels.catalog.base`` for what it takes."""

    def generate(_, builder, __, args):
        kind = ir.FunctionType(I32, [I64.as_pointer(), I64, I64, I64])
        pointer = _at(builder, args[0], kind)
        return builder.call(pointer, [_at(builder, args[1], I64), *args[2:]])

    return types.int32(*[types.int64] * 5), generate


@intrinsic
def call_system(context, function, number, a, b, c):
    """``long syscall(long number, ...)`` of libc, whose address the host hands over.

    The library itself needs no libc that way.
    """

    def generate(_, builder, __, args):
        kind = ir.FunctionType(I64, [I64] * 5)
        return builder.call(
            _at(builder, args[0], kind), [*args[1:], ir.Constant(I64, 0)]
        )

    return types.int64(*[types.int64] * 5), generate
