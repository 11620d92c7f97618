"""ONNX operators that work on each element by itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.tensors import DTYPES
from edgewise.ir.graph import Value
from edgewise.ir.op import OPS, Op
from edgewise.ops.binary import Add, Div, Maximum, Minimum, Mod, Pow, Sub
from edgewise.ops.choose import ROUNDINGS, Cast, Clip, Where
from edgewise.ops.create import Fill
from edgewise.ops.logic import Less, ShiftLeft, ShiftRight
from edgewise.ops.numerals import WRITTEN, FormatNumber, ParseNumber
from edgewise.ops.shape import Reshape
from edgewise.ops.unary import Isinf, Neg
from edgewise.types import DType

_UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseNot": "bitwise_not",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "IsNaN": "isnan",
    "Log": "log",
    "Neg": "neg",
    "Not": "not",
    "Reciprocal": "reciprocal",
    "Round": "round",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
}
_BINARY = {
    "Add": "add",
    "And": "and",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Div": "div",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Mul": "mul",
    "Or": "or",
    "Sub": "sub",
    "Xor": "xor",
}
_VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _unary(core: str, ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    return ctx.emit(OPS[core](), ctx[0])


def _binary(core: str, ctx: OpContext) -> Value:
    return ctx.emit(OPS[core](), *_pair(ctx))


def _variadic(core: str, ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    return _tree(ctx, OPS[core](), ctx.all())


def _tree(ctx: OpContext, op: Op, values: Sequence[Value]) -> Value:
    """All values under ``op``, in pairs: a chain would be as deep as there are many."""
    while len(values) > 1:
        firsts, seconds = values[::2], values[1::2]
        odd = firsts[len(seconds) :]
        pairs = zip(firsts, seconds, strict=False)
        values = (*(ctx.emit(op, a, b) for a, b in pairs), *odd)
    return values[0]


for _name, _core in _UNARY.items():
    onnx_op(_name)(functools.partial(_unary, _core))
for _name, _core in _BINARY.items():
    onnx_op(_name)(functools.partial(_binary, _core))
for _name, _core in _VARIADIC.items():
    onnx_op(_name)(functools.partial(_variadic, _core))


def _pair(ctx: OpContext) -> tuple[Value, Value]:
    """Both operands; before operator set 7 the second was aligned by an attribute."""
    a, b = ctx[0], ctx[1]
    if ctx.opset >= 7:
        return a, b
    ctx.ignore("consumed_inputs")
    axis, broadcast = ctx.attribute("axis"), ctx.attribute("broadcast", 0)
    if not broadcast or axis is None or b.type.rank == 0:
        return a, b
    behind = a.type.rank - ctx.normal(axis, a.type.rank) - b.type.rank
    if behind < 0:
        raise ctx.malformed(f"its second input does not fit behind axis {axis}")
    return a, ctx.emit(Reshape((*b.type.shape, *(1,) * behind)), b)


@onnx_op("Mean")
def _mean(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    total = _tree(ctx, Add(), ctx.all())
    return ctx.emit(Div(), total, ctx.like(len(ctx.inputs), total))


@onnx_op("Pow")
def _pow(ctx: OpContext) -> Value:
    a, b = _pair(ctx)
    wanted = a.type.dtype
    if b.type.dtype is wanted:
        return ctx.emit(Pow(), a, b)
    if wanted.is_float or b.type.dtype.is_integer:
        return ctx.emit(Pow(), a, ctx.emit(Cast(wanted.value), b))
    # A whole base and a fractional exponent: the power is taken among fractions.
    power = ctx.emit(Pow(), ctx.emit(Cast(b.type.dtype.value), a), b)
    return ctx.emit(Cast(wanted.value), power)


@onnx_op("Mod")
def _mod(ctx: OpContext) -> Value:
    fmod = bool(ctx.attribute("fmod", 0))
    if ctx[0].type.dtype.is_float and not fmod and ctx.opset < 28:
        raise ctx.malformed("floats need fmod=1")
    return ctx.emit(Mod(fmod), ctx[0], ctx[1])


@onnx_op("BitShift")
def _bit_shift(ctx: OpContext) -> Value:
    direction = ctx.attribute("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise ctx.malformed(f"its direction is {direction!r}; want LEFT or RIGHT")
    return ctx.emit(ShiftLeft() if direction == "LEFT" else ShiftRight(), *ctx.all())


@onnx_op("IsInf")
def _is_inf(ctx: OpContext) -> Value:
    positive = bool(ctx.attribute("detect_positive", 1))
    negative = bool(ctx.attribute("detect_negative", 1))
    return ctx.emit(Isinf(positive, negative), ctx[0])


@onnx_op("Where")
def _where(ctx: OpContext) -> Value:
    return ctx.emit(Where(), ctx[0], ctx[1], ctx[2])


@onnx_op("Cast")
def _cast(ctx: OpContext) -> Value:
    code = ctx.attribute("to")
    if isinstance(code, str):  # before operator set 6
        code = TensorProto.DataType.Value(code) if code in _TYPE_NAMES else None
    if code not in DTYPES:
        raise ctx.malformed(f"casts to element type {code}, which ONNX does not have")
    return _cast_to(ctx, DTYPES[code])


_TYPE_NAMES = frozenset(TensorProto.DataType.keys())


@onnx_op("CastLike")
def _cast_like(ctx: OpContext) -> Value:
    return _cast_to(ctx, ctx[1].type.dtype)


def _cast_to(ctx: OpContext, dtype: DType) -> Value:
    saturate = bool(ctx.attribute("saturate", 1))
    rounding = ctx.attribute("round_mode", "up")
    if ctx[0].type.dtype is dtype:
        return ctx[0]
    if DType.STRING in (ctx[0].type.dtype, dtype):
        return _cast_text(ctx, dtype)
    if rounding not in ROUNDINGS:
        raise ctx.malformed(f"round_mode={rounding!r}; want one of {ROUNDINGS}")
    return ctx.emit(Cast(dtype.value, saturate, rounding), ctx[0])


def _cast_text(ctx: OpContext, dtype: DType) -> Value:
    """A cast to or from strings; narrow floats are read and written as wide ones."""
    x, given = ctx[0], ctx[0].type.dtype
    number = given if dtype is DType.STRING else dtype
    if number not in WRITTEN and not number.is_float:
        raise ctx.unsupported(
            f"casts {given.value} to {dtype.value}", "cast to i64 or f32 in between"
        )
    wide = number if number in WRITTEN else DType.F32
    if dtype is DType.STRING:
        x = x if wide is given else ctx.emit(Cast(wide.value), x)
        return ctx.emit(FormatNumber(), x)
    parsed = ctx.emit(ParseNumber(wide.value), x)
    return parsed if wide is dtype else ctx.emit(Cast(dtype.value), parsed)


@onnx_op("Clip")
def _clip_attributes(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    low = float(ctx.attribute("min", -np.inf))
    return _clip_between(ctx, low, float(ctx.attribute("max", np.inf)))


@onnx_op("Clip", since=11)
def _clip(ctx: OpContext) -> Value:
    x, bounds = ctx[0], []
    for index, default in ((1, -np.inf), (2, np.inf)):
        value = ctx.optional(index)
        array = np.asarray(default) if value is None else ctx.constant_or_none(index)
        if array is None or array.size != 1 or not x.type.dtype.is_float:
            return _clip_by_values(ctx)
        bounds.append(float(array.reshape(())))
    return _clip_between(ctx, *bounds)


def _clip_between(ctx: OpContext, low: float, high: float) -> Value:
    # The lower bound goes first: where they cross, the upper one wins.
    return ctx.emit(Clip(min(low, high), high), ctx[0])


def _clip_by_values(ctx: OpContext) -> Value:
    x, low, high = ctx[0], ctx.optional(1), ctx.optional(2)
    if low is not None:
        x = ctx.emit(Maximum(), x, low)
    return x if high is None else ctx.emit(Minimum(), x, high)


@onnx_op("Identity")
def _identity(ctx: OpContext) -> Value:
    return ctx[0]


@onnx_op("Dropout")
def _dropout(ctx: OpContext) -> tuple[Value, Value]:
    """Before operator set 12 exports for inference kept everything."""
    ctx.ignore("ratio", "seed", "is_test", "consumed_inputs")
    kept = ctx.constant(np.array(True))
    return ctx[0], ctx.emit(Fill(ctx[0].type.shape), kept)


@onnx_op("Shrink")
def _shrink(ctx: OpContext) -> Value:
    x = ctx[0]
    bias = ctx.like(ctx.attribute("bias", 0.0), x)
    limit = ctx.like(ctx.attribute("lambd", 0.5), x)
    above = ctx.emit(Sub(), x, bias)
    inside = ctx.emit(Where(), ctx.emit(Less(), limit, x), above, ctx.like(0, x))
    below = ctx.emit(Less(), x, ctx.emit(Neg(), limit))
    return ctx.emit(Where(), below, ctx.emit(Add(), x, bias), inside)
