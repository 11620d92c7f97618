"""What every kernel is made of: status, words as pointers and floats, shared helpers.

A kernel is ``kernel(args, begin, end, worker)``; ``args[i]`` are 64-bit words.  A file
of kernels holds ``EXPORTS: dict[str, function]``.  Code that kernels share is marked
``@helper`` and is inlined.  No kernel may raise, allocate or call libm: the library has
no undefined symbols but memcpy, memmove and memset.
"""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from edgewise.errors import DIVISION_BY_ZERO, INDEX_OUT_OF_RANGE, SHAPE_MISMATCH

__all__ = [
    "DIVISION_BY_ZERO",
    "FLAGS",
    "INDEX_OUT_OF_RANGE",
    "KERNEL",
    "OK",
    "SHAPE_MISMATCH",
    "as_f32",
    "as_f64",
    "bool_",
    "f16",
    "f32",
    "f64",
    "helper",
    "i8",
    "i16",
    "i32",
    "i64",
    "reassociating",
    "u8",
    "u16",
    "u32",
    "u64",
]

OK = 0
KERNEL = types.int32(types.CPointer(types.int64), types.int64, types.int64, types.int64)

# ``reassoc`` breaks rounding tricks and compensated sums, ``arcp`` quantisation,
# ``nnan`` tests for NaN; fusing a product with a sum only makes both more exact.
FLAGS = frozenset({"contract", "nsz"})
_OPTIONS = {
    "error_model": "numpy",
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
helper = njit(fastmath=set(FLAGS), **_OPTIONS)
# For a sum alone in its function: its terms may be added in another order.
reassociating = njit(fastmath={*FLAGS, "reassoc"}, **_OPTIONS)


def _pointer(element: types.Type, llvm: ir.Type):
    @intrinsic
    def pointer(context, address):
        def generate(_, builder, __, args):
            return builder.inttoptr(args[0], llvm.as_pointer())

        return types.CPointer(element)(types.int64), generate

    return pointer


f32 = _pointer(types.float32, ir.FloatType())
f64 = _pointer(types.float64, ir.DoubleType())
i8 = _pointer(types.int8, ir.IntType(8))
i16 = _pointer(types.int16, ir.IntType(16))
i32 = _pointer(types.int32, ir.IntType(32))
i64 = _pointer(types.int64, ir.IntType(64))
u8 = _pointer(types.uint8, ir.IntType(8))
u16 = _pointer(types.uint16, ir.IntType(16))
u32 = _pointer(types.uint32, ir.IntType(32))
u64 = _pointer(types.uint64, ir.IntType(64))
# Both read as integers: bytes of bool tensors, 0 or 1, and the bits of float16 tensors.
bool_, f16 = u8, u16


@intrinsic
def as_f32(context, word):
    """The float32 whose bits are the low half of ``word``."""

    def generate(_, builder, __, args):
        bits = builder.trunc(args[0], ir.IntType(32))
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.int64), generate


@intrinsic
def as_f64(context, word):
    """The float64 whose bits are ``word``."""

    def generate(_, builder, __, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate
