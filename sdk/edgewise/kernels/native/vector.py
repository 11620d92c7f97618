"""Sixteen lanes at once: a Numba type over an LLVM vector, split for every target.

``f32x16``, ``i32x16`` and ``mask16`` values add, multiply, compare with the usual
operators; ``splat(x)`` makes one from a scalar; ``memory.py`` loads and stores them.
AVX-512 holds a vector in one register, AVX in two, NEON in four.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

LANES = 16
F32, I1, I8, I32, I64 = ir.FloatType(), *map(ir.IntType, (1, 8, 32, 64))


class Vector(types.Type):
    """Sixteen lanes of one element type."""

    def __init__(self, name: str, element: ir.Type) -> None:
        super().__init__(name=name)
        self.element = element
        self.llvm = ir.VectorType(element, LANES)


class F32Vector(Vector):
    """Type of ``f32x16``."""


class I32Vector(Vector):
    """Type of ``i32x16``."""


class ByteVector(Vector):
    """Type of ``i8x16``."""


class MaskVector(Vector):
    """Type of ``mask16``."""


f32x16 = F32Vector("f32x16", F32)
i32x16 = I32Vector("i32x16", I32)
i8x16 = ByteVector("i8x16", I8)
mask16 = MaskVector("mask16", I1)


@register_model(F32Vector)
@register_model(I32Vector)
@register_model(ByteVector)
@register_model(MaskVector)
class VectorModel(models.PrimitiveModel):
    """A vector is one LLVM value."""

    def __init__(self, manager, vector):
        super().__init__(manager, vector, vector.llvm)


def constant(vector: Vector, values) -> ir.Constant:
    """A vector known when the kernel is compiled; one value, or sixteen."""
    lanes = values if isinstance(values, list) else [values] * LANES
    return ir.Constant(vector.llvm, lanes)


def call_llvm(builder, name: str, result: ir.Type, *args):
    """A call of an LLVM intrinsic, declared where it is not yet."""
    kind = ir.FunctionType(result, [a.type for a in args])
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, kind, name
    )
    return builder.call(function, args)


def _of_one(result, a, emit):
    @intrinsic
    def operation(context, x):
        def generate(_, builder, __, args):
            return emit(builder, *args)

        return result(a), generate

    return operation


def _of_two(result, a, b, emit):
    @intrinsic
    def operation(context, x, y):
        def generate(_, builder, __, args):
            return emit(builder, *args)

        return result(a, b), generate

    return operation


def _of_three(result, a, b, c, emit):
    @intrinsic
    def operation(context, x, y, z):
        def generate(_, builder, __, args):
            return emit(builder, *args)

        return result(a, b, c), generate

    return operation


def _operate(function, result, args, emit):
    """Give an operator of Python a meaning on vectors."""

    class Typing(ConcreteTemplate):
        cases = (signature(result, *args),)

    infer_global(function)(Typing)

    @lower_builtin(function, *args)
    def lower(context, builder, sig, values):
        return emit(builder, *values)


def _register_operators() -> None:
    def method(name):
        return lambda builder, *values: getattr(builder, name)(*values)

    def compare(name, sign):
        return lambda builder, a, b: getattr(builder, name)(sign, a, b)

    floats = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
    for name, emit in floats.items():
        kinds = (f32x16, f32x16)
        _operate(getattr(operator, name), f32x16, kinds, method(emit))
    _operate(operator.neg, f32x16, (f32x16,), method("fneg"))
    integers = {"add": "add", "sub": "sub", "mul": "mul", "and_": "and_", "or_": "or_"}
    integers |= {"xor": "xor", "lshift": "shl", "rshift": "ashr"}
    for name, emit in integers.items():
        kinds = (i32x16, i32x16)
        _operate(getattr(operator, name), i32x16, kinds, method(emit))
    for name in ("and_", "or_", "xor"):
        _operate(getattr(operator, name), mask16, (mask16, mask16), method(name))
    _operate(operator.invert, mask16, (mask16,), method("not_"))
    signs = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    for name, sign in signs.items():
        # An ordered comparison with NaN is false; != is the unordered one: true.
        kind = "fcmp_unordered" if name == "ne" else "fcmp_ordered"
        function = getattr(operator, name)
        _operate(function, mask16, (f32x16, f32x16), compare(kind, sign))
        _operate(function, mask16, (i32x16, i32x16), compare("icmp_signed", sign))


_register_operators()


def splat_lanes(builder, scalar, vector: Vector):
    """``scalar`` in all lanes."""
    zero = ir.Constant(I32, 0)
    first = builder.insert_element(ir.Constant(vector.llvm, ir.Undefined), scalar, zero)
    return builder.shuffle_vector(
        first, first, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES)
    )


# Numba converts a float64 literal to the float32 that the signature asks for.
splat = _of_one(f32x16, types.float32, lambda b, x: splat_lanes(b, x, f32x16))
splat_i32 = _of_one(i32x16, types.int32, lambda b, x: splat_lanes(b, x, i32x16))


def fused_multiply_add(context, builder, *values):
    """``x * y + z``; in two steps where LLVM would call libm for each lane."""
    if getattr(context.codegen(), "fused", True):
        kind = values[0].type
        return call_llvm(builder, f"llvm.fma.v{kind.count}f32", kind, *values)
    return builder.fadd(builder.fmul(*values[:2]), values[2])


@intrinsic
def fma(typing, x, y, z):
    """``x * y + z``, rounded once where the target can."""

    def generate(context, builder, _, args):
        return fused_multiply_add(context, builder, *args)

    return f32x16(f32x16, f32x16, f32x16), generate


def _math(name):
    full = f"llvm.{name}.v16f32"
    return lambda builder, *values: call_llvm(builder, full, f32x16.llvm, *values)


absolute = _of_one(f32x16, f32x16, _math("fabs"))
sqrt = _of_one(f32x16, f32x16, _math("sqrt"))
floor = _of_one(f32x16, f32x16, _math("floor"))
ceil = _of_one(f32x16, f32x16, _math("ceil"))
truncate = _of_one(f32x16, f32x16, _math("trunc"))
rint = _of_one(f32x16, f32x16, _math("roundeven"))
copysign = _of_two(f32x16, f32x16, f32x16, _math("copysign"))
select = _of_three(f32x16, mask16, f32x16, f32x16, lambda b, m, x, y: b.select(m, x, y))
select_i32 = _of_three(
    i32x16, mask16, i32x16, i32x16, lambda b, m, x, y: b.select(m, x, y)
)
is_nan = _of_one(mask16, f32x16, lambda b, x: b.fcmp_unordered("uno", x, x))


def hold_at_least(builder, x, low):
    """``x``, or ``low`` where that is larger; a NaN stays."""
    return builder.select(builder.fcmp_ordered(">", low, x), low, x)


def hold_at_most(builder, x, high):
    """``x``, or ``high`` where that is smaller; a NaN stays."""
    return builder.select(builder.fcmp_ordered("<", high, x), high, x)


# ``x`` held to a bound that is no NaN; a NaN in ``x`` stays.  One instruction on x86.
at_least = _of_two(f32x16, f32x16, f32x16, hold_at_least)
at_most = _of_two(f32x16, f32x16, f32x16, hold_at_most)


def _either_nan(pick):
    def emit(builder, x, y):
        return builder.select(
            builder.fcmp_unordered("uno", y, y), y, pick(builder, x, y)
        )

    return emit


# The larger and the smaller; NaN where either is NaN, as numpy has it.
maximum = _of_two(f32x16, f32x16, f32x16, _either_nan(hold_at_least))
minimum = _of_two(f32x16, f32x16, f32x16, _either_nan(hold_at_most))

# Conversions.  ``to_i32`` truncates; NaN gives 0 and what is too large the nearest end.
to_i32 = _of_one(
    i32x16,
    f32x16,
    lambda b, x: call_llvm(b, "llvm.fptosi.sat.v16i32.v16f32", i32x16.llvm, x),
)
to_f32 = _of_one(f32x16, i32x16, lambda b, x: b.sitofp(x, f32x16.llvm))
to_bytes = _of_one(i8x16, i32x16, lambda b, x: b.trunc(x, i8x16.llvm))
from_u8 = _of_one(i32x16, i8x16, lambda b, x: b.zext(x, i32x16.llvm))
from_i8 = _of_one(i32x16, i8x16, lambda b, x: b.sext(x, i32x16.llvm))
bits = _of_one(i32x16, f32x16, lambda b, x: b.bitcast(x, i32x16.llvm))
from_bits = _of_one(f32x16, i32x16, lambda b, x: b.bitcast(x, f32x16.llvm))


@intrinsic
def lane_index(context):
    """0, 1, … 15."""

    def generate(_, builder, __, args):
        return constant(i32x16, list(range(LANES)))

    return i32x16(), generate


def _fold(emit):
    """Halve the vector until one lane is left: the same tree on every target."""

    def reduce(builder, value):
        width = LANES
        while width > 1:
            width //= 2
            kind = ir.VectorType(I32, width)
            halves = [
                builder.shuffle_vector(value, value, ir.Constant(kind, list(lanes)))
                for lanes in (range(width), range(width, 2 * width))
            ]
            value = emit(builder, *halves)
        return builder.extract_element(value, ir.Constant(I32, 0))

    return reduce


sum_lanes = _of_one(types.float32, f32x16, _fold(lambda b, x, y: b.fadd(x, y)))
product_lanes = _of_one(types.float32, f32x16, _fold(lambda b, x, y: b.fmul(x, y)))
max_lanes = _of_one(types.float32, f32x16, _fold(_either_nan(hold_at_least)))
min_lanes = _of_one(types.float32, f32x16, _fold(_either_nan(hold_at_most)))
