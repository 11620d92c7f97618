"""What works element by element, in whichever order the elements lie."""

from __future__ import annotations

import math

import numpy as np

from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.writer import CODES, LATE, At, channels_second
from edgewise.dtype import DType
from edgewise.ir.graph import Value
from edgewise.ir.op import Op
from edgewise.ops import binary, choose, logic, numerals, unary
from edgewise.ops.quantize import limits
from edgewise.types import TensorType

SAME: dict[type[Op], str] = {
    unary.Neg: "Neg",
    unary.Abs: "Abs",
    unary.Sign: "Sign",
    unary.Sqrt: "Sqrt",
    unary.Reciprocal: "Reciprocal",
    unary.Exp: "Exp",
    unary.Log: "Log",
    unary.Sin: "Sin",
    unary.Cos: "Cos",
    unary.Tan: "Tan",
    unary.Asin: "Asin",
    unary.Acos: "Acos",
    unary.Atan: "Atan",
    unary.Sinh: "Sinh",
    unary.Cosh: "Cosh",
    unary.Asinh: "Asinh",
    unary.Acosh: "Acosh",
    unary.Atanh: "Atanh",
    unary.Erf: "Erf",
    unary.Floor: "Floor",
    unary.Ceil: "Ceil",
    unary.Round: "Round",
    unary.Not: "Not",
    unary.BitwiseNot: "BitwiseNot",
    unary.Isnan: "IsNaN",
    binary.Add: "Add",
    binary.Sub: "Sub",
    binary.Mul: "Mul",
    binary.Div: "Div",
    binary.Pow: "Pow",
    binary.Minimum: "Min",
    binary.Maximum: "Max",
    logic.And: "And",
    logic.Or: "Or",
    logic.Xor: "Xor",
    logic.Equal: "Equal",
    logic.Less: "Less",
    logic.LessEqual: "LessOrEqual",
    logic.Greater: "Greater",
    logic.GreaterEqual: "GreaterOrEqual",
    logic.BitwiseAnd: "BitwiseAnd",
    logic.BitwiseOr: "BitwiseOr",
    logic.BitwiseXor: "BitwiseXor",
    choose.Where: "Where",
}


def operands(at: At) -> tuple[list[str], type[str]]:
    """Names of all inputs in one order, and what marks a result in that order."""
    if not any(at.writer.is_image(value) for value in at.inputs):
        return at.names(), str
    rank = at.y.type.rank
    values = [at.value(index) for index in range(len(at.inputs))]
    return [second(at, value, rank) for value in values], Image


def second(at: At, value: Value, rank: int) -> str:
    """A value that broadcasts to ``[N, ..., C]``, to broadcast to ``[N, C, ...]``."""
    own = value.type.rank
    if own == rank:
        return at.writer.image(value)
    name = at.writer.name(value)
    if own == 0:
        return name
    if own == 1:
        axes = at.integers(*range(1, rank - 1))
        return at.emit("Unsqueeze", name, axes)
    wide = at.emit("Unsqueeze", name, at.integers(*range(rank - own)))
    return at.emit("Transpose", wide, perm=list(channels_second(rank)))


@writes(*SAME)
def same(at: At) -> Written:
    """The operator of the same meaning."""
    names, form = operands(at)
    return form(at.emit(SAME[type(at.op)], *names))


@writes(unary.Isinf)
def is_inf(at: At) -> Written:
    """With the signs that count."""
    (name,), form = operands(at)
    signs = {
        "detect_positive": int(at.op.positive),
        "detect_negative": int(at.op.negative),
    }
    return form(at.emit("IsInf", name, **signs))


@writes(logic.ShiftLeft, logic.ShiftRight)
def shift(at: At) -> Written:
    """ONNX's one operator for both."""
    names, form = operands(at)
    if not at.x.type.dtype.value.startswith("u"):
        raise at.refuse(f"it shifts {at.x.type.dtype.value}, which has a sign")
    way = "LEFT" if isinstance(at.op, logic.ShiftLeft) else "RIGHT"
    return form(at.emit("BitShift", *names, direction=way))


@writes(binary.Mod)
def mod(at: At) -> Written:
    """Of fractions ONNX has the remainder with the sign of the dividend alone."""
    (a, b), form = operands(at)
    whole = at.x.type.dtype.is_integer
    if at.op.fmod or whole:
        return form(at.emit("Mod", a, b, fmod=int(at.op.fmod)))
    rest, zero = at.emit("Mod", a, b, fmod=1), at.number(0, at.x)
    signs = [at.emit("Less", name, zero) for name in (rest, b)]
    other = at.emit("Not", at.emit("Equal", rest, zero))
    moved = at.emit("And", other, at.emit("Xor", *signs))
    return form(at.emit("Where", moved, at.emit("Add", rest, b), rest))


@writes(choose.Clip)
def clip(at: At) -> Written:
    """Between two numbers, as far as they bound anything."""
    (name,), form = operands(at)
    return form(clipped(at, name, at.x.type, at.op.low, at.op.high))


def clipped(at: At, name: str, type_: TensorType, low: float, high: float) -> str:
    """Elements between two numbers."""
    ends = (-math.inf, math.inf)
    if type_.dtype.is_integer:
        ends = limits(type_.dtype)
    bounds = [
        at.writer.constant(np.asarray(bound, type_.dtype.numpy)) if binds else ""
        for bound, binds in ((low, low > ends[0]), (high, high < ends[1]))
    ]
    return at.emit("Clip", name, *bounds)


@writes(choose.Cast)
def cast(at: At) -> Written:
    """To another element type."""
    (name,), form = operands(at)
    to = DType(at.op.to)
    more = {} if at.op.saturate else {"saturate": 0}
    if to in LATE:
        raise at.refuse(f"it casts to {to.value}, which operator set 21 lacks")
    return form(at.emit("Cast", name, to=CODES[to], **more))


@writes(numerals.FormatNumber)
def format_number(at: At) -> Written:
    """A cast to text."""
    return at.cast(at.name(0), DType.STRING)


@writes(numerals.ParseNumber)
def parse_number(at: At) -> Written:
    """A cast from text."""
    return at.cast(at.name(0), DType(at.op.to))
