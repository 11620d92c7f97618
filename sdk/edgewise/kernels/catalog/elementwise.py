"""Which native functions serve elementwise ops: unary, binary, where, cast, clip."""

from __future__ import annotations

from functools import partial

from edgewise.kernels.catalog.base import MAX_RANK, Binding, Call, f32_word, kernel
from edgewise.kernels.catalog.calls import (
    BOOL,
    F32,
    all_f32,
    flat,
    given,
    integer,
    only_f32,
    real,
    spread,
)
from edgewise.types import DType

# Vector bodies, one function each.
UNARY_F32 = (
    "neg", "abs", "sqrt", "reciprocal", "exp", "log", "erf", "sign", "floor", "ceil",
    "round",
)  # fmt: skip
BINARY_F32 = ("add", "sub", "mul", "div", "minimum", "maximum")

# Rare ones share a function, which reads a code: the place in these tuples.
CODED_F32 = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
    "atanh",
)  # fmt: skip
POWER_F32 = ("pow", "mod", "fmod")
UNARY_INTEGER = ("neg", "abs", "sign", "bitwise_not", "not")
BINARY_INTEGER = (
    "add", "sub", "mul", "div", "mod", "fmod", "minimum", "maximum", "bitwise_and",
    "bitwise_or", "bitwise_xor", "shift_left", "shift_right",
)  # fmt: skip
COMPARE = ("equal", "less", "less_equal", "greater", "greater_equal")
LOGICAL = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}

# Integer types with kernels; a bool is a byte of 0 or 1.
INTEGERS = {
    DType.I64: "i64",
    DType.I32: "i32",
    DType.I8: "i8",
    DType.U8: "u8",
    BOOL: "u8",
}
SUFFIXES = ("i64", "i32", "i8", "u8")
CAST = (F32, DType.F64, DType.I64, DType.I32, DType.I8, DType.U8, BOOL)
ANY_INPUT = range(MAX_RANK)
CODED_BLOCK = 512  # elements a task of a rare function: three to six microseconds


def _unary(symbol: str, call: Call) -> Binding:
    return flat(call, symbol)


def _binary(symbol: str, call: Call) -> Binding | None:
    return spread(call, symbol)


def _coded(code: int, call: Call) -> Binding:
    return flat(call, "coded_f32", code, block=CODED_BLOCK)


def _unary_integer(code: int, call: Call) -> Binding | None:
    name = INTEGERS.get(given(call, 0).dtype)
    return flat(call, f"unary_{name}", code) if name else None


def _binary_integer(code: int, call: Call) -> Binding | None:
    name = INTEGERS.get(given(call, 0).dtype)
    return spread(call, f"binary_{name}", code) if name else None


def _compare(code: int, call: Call) -> Binding | None:
    dtype = given(call, 0).dtype
    name = "f32" if dtype is F32 else INTEGERS.get(dtype)
    return spread(call, f"compare_{name}", code) if name else None


def _register_f32() -> None:
    for op in UNARY_F32:
        symbol = f"{op}_f32"
        kernel(op, symbol)(only_f32(partial(_unary, symbol)))
    for op in BINARY_F32:
        symbol = f"{op}_f32"
        kernel(op, symbol, strided=ANY_INPUT)(only_f32(partial(_binary, symbol)))
    for code, op in enumerate(CODED_F32):
        kernel(op, "coded_f32")(only_f32(partial(_coded, code)))


def _register_integers() -> None:
    unary = tuple(f"unary_{name}" for name in SUFFIXES)
    binary = tuple(f"binary_{name}" for name in SUFFIXES)
    compare = tuple(f"compare_{name}" for name in ("f32", *SUFFIXES))
    for code, op in enumerate(UNARY_INTEGER):
        kernel(op, *unary)(partial(_unary_integer, code))
    for code, op in enumerate(BINARY_INTEGER):
        if op not in ("mod", "fmod"):
            kernel(op, *binary)(partial(_binary_integer, code))
    for op, same in LOGICAL.items():
        code = BINARY_INTEGER.index(same)
        kernel(op, *binary)(partial(_binary_integer, code))
    for code, op in enumerate(COMPARE):
        kernel(op, *compare)(partial(_compare, code))


@kernel("isnan", "test_f32")
def bind_isnan(call: Call) -> Binding | None:
    """Not a number."""
    return flat(call, "test_f32", 1, 0, 0) if given(call, 0).dtype is F32 else None


@kernel("isinf", "test_f32")
def bind_isinf(call: Call) -> Binding | None:
    """Infinite, of the signs asked for."""
    if given(call, 0).dtype is not F32:
        return None
    return flat(
        call, "test_f32", 0, integer(call, "positive"), integer(call, "negative")
    )


@kernel("mod", "power_f32", *(f"binary_{name}" for name in SUFFIXES))
def bind_mod(call: Call) -> Binding | None:
    """Remainders of both signs."""
    name = "fmod" if integer(call, "fmod") else "mod"
    if all_f32(call):
        return spread(call, "power_f32", POWER_F32.index(name))
    return _binary_integer(BINARY_INTEGER.index(name), call)


@kernel("pow", "power_f32", strided=ANY_INPUT)
def bind_pow(call: Call) -> Binding | None:
    """Powers of two f32 tensors."""
    code = POWER_F32.index("pow")
    return spread(call, "power_f32", code) if all_f32(call) else None


@kernel("where", "where_1", "where_2", "where_4", "where_8")
def bind_where(call: Call) -> Binding | None:
    """Picks bytes, so that only the size of an element matters."""
    size = call.outputs[0].dtype.bits // 8
    return spread(call, f"where_{size}") if size in (1, 2, 4, 8) else None


@kernel("cast", "cast_f16", *(f"cast_{dtype.value}" for dtype in CAST))
def bind_cast(call: Call) -> Binding | None:
    """Between the number types that kernels compute in, and from halves to float32."""
    source, target = given(call, 0).dtype, call.outputs[0].dtype
    if (source, target) == (DType.F16, F32):
        return flat(call, "cast_f16")
    if source not in CAST or target not in CAST:
        return None
    return flat(call, f"cast_{source.value}", CAST.index(target))


@kernel("clip", "clip_f32")
def bind_clip(call: Call) -> Binding | None:
    """Between two numbers; NaN stays."""
    low, high = f32_word(real(call, "low")), f32_word(real(call, "high"))
    return flat(call, "clip_f32", low, high) if all_f32(call) else None


_register_f32()
_register_integers()
