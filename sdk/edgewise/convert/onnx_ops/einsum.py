"""ONNX Einsum: products of two at a time, sums over what is left."""

from __future__ import annotations

import re
from typing import NamedTuple

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import product
from edgewise.ir.graph import Value
from edgewise.ops.binary import Mul
from edgewise.ops.index import Triangle
from edgewise.ops.matmul import MatMul
from edgewise.ops.reduce import ReduceSum
from edgewise.ops.shape import Transpose

_EQUATION = re.compile(r"([A-Za-z.,]*)(->([A-Za-z.]*))?")
_TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


class _Operand(NamedTuple):
    """A value and what its axes are called, each once."""

    value: Value
    labels: tuple[str, ...]


@onnx_op("Einsum", since=12)
def _einsum(ctx: OpContext) -> Value:
    equation = str(ctx.attribute("equation", "")).replace(" ", "")
    terms, result = _parsed(ctx, equation)
    operands = [
        _single(ctx, value, labels)
        for value, labels in zip(ctx.all(), terms, strict=True)
    ]
    operands = [_without_ones(ctx, operands, index) for index in range(len(operands))]
    total, *rest = operands
    for index, operand in enumerate(rest):
        later = {label for other in rest[index + 1 :] for label in other.labels}
        total = _multiplied(ctx, total, operand, later | set(result))
    return _ordered(ctx, _summed(ctx, total, set(result)), result)


def _parsed(
    ctx: OpContext, equation: str
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Labels of every operand and of the result; axes of an ellipsis are numbers."""
    match = _EQUATION.fullmatch(equation)
    texts = match[1].split(",") if match else []
    if match is None or len(texts) != len(ctx.inputs):
        raise ctx.malformed(f"its equation {equation!r} does not fit its inputs")
    terms = [
        _labels(ctx, text, value.type.rank)
        for text, value in zip(texts, ctx.all(), strict=True)
    ]
    seen = [label for term in terms for label in term]
    hidden = tuple(sorted({x for x in seen if x.isdigit()}, key=int, reverse=True))
    if match[2] is None:
        once = sorted(x for x in set(seen) if seen.count(x) == 1 and x.isalpha())
        return terms, (*hidden, *once)
    result = _labels(ctx, match[3], len(match[3].replace(".", "")) + len(hidden))
    if len(set(result)) != len(result) or not set(result) <= set(seen):
        raise ctx.malformed(f"its equation {equation!r} gives axes it does not have")
    return terms, result


def _labels(ctx: OpContext, text: str, rank: int) -> tuple[str, ...]:
    match = _TERM.fullmatch(text)
    hidden = rank - len(text.replace(".", ""))
    if match is None or hidden < 0 or (hidden and not match[2]):
        raise ctx.malformed(f"its term {text!r} does not fit {rank} axes")
    # Counted from the right, as broadcasting aligns them.
    numbers = (str(number) for number in reversed(range(hidden)))
    return (*match[1], *numbers, *match[3])


def _single(ctx: OpContext, x: Value, labels: tuple[str, ...]) -> _Operand:
    """The operand with every label once: of a repeated one the diagonal."""
    for label in labels:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            others = [
                axis for axis in range(len(labels)) if axis not in (first, second)
            ]
            x = ctx.emit(Transpose((*others, first, second)), x)
            for upper in (True, False):
                x = ctx.emit(Triangle(upper), x)
            x = ctx.emit(ReduceSum((len(others),), False), x)
            labels = (*(labels[axis] for axis in others), label)
    return _Operand(x, labels)


def _without_ones(ctx: OpContext, operands: list[_Operand], index: int) -> _Operand:
    """The operand without axes of size 1 that broadcast to those of another."""
    x, labels = operands[index]
    others = {
        label
        for other in operands
        for label, size in zip(other.labels, other.value.type.shape, strict=True)
        if size != 1
    }
    pairs = zip(labels, x.type.shape, strict=True)
    kept = [(label, size) for label, size in pairs if size != 1 or label not in others]
    if len(kept) == len(labels):
        return operands[index]
    x = reshaped(ctx, x, *(size for _, size in kept))
    return _Operand(x, tuple(label for label, _ in kept))


def _summed(ctx: OpContext, operand: _Operand, wanted: set[str]) -> _Operand:
    """The operand summed along labels that nobody wants any more."""
    x, labels = operand
    axes = tuple(axis for axis, label in enumerate(labels) if label not in wanted)
    if not axes:
        return operand
    x = ctx.emit(ReduceSum(axes, False), x)
    return _Operand(x, tuple(label for label in labels if label in wanted))


def _ordered(ctx: OpContext, operand: _Operand, labels: tuple[str, ...]) -> Value:
    axes = tuple(operand.labels.index(label) for label in labels)
    if axes == tuple(range(len(axes))):
        return operand.value
    return ctx.emit(Transpose(axes), operand.value)


def _multiplied(ctx: OpContext, a: _Operand, b: _Operand, wanted: set[str]) -> _Operand:
    """The product of two operands, summed along what nobody wants."""
    a = _summed(ctx, a, wanted | set(b.labels))
    b = _summed(ctx, b, wanted | set(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    batch = tuple(label for label in shared if label in wanted)
    inner = tuple(label for label in shared if label not in wanted)
    rows = tuple(label for label in a.labels if label not in shared)
    columns = tuple(label for label in b.labels if label not in shared)
    left = _ordered(ctx, a, (*batch, *rows, *inner))
    right = _ordered(ctx, b, (*batch, *inner, *columns))
    split, end = len(batch), len(batch) + len(inner)
    shape = left.type.shape[:split]
    row_sizes = left.type.shape[split : split + len(rows)]
    column_sizes = right.type.shape[end:]
    sizes = (product(row_sizes), product(right.type.shape[split:end]))
    left = reshaped(ctx, left, *shape, *sizes)
    right = reshaped(ctx, right, *shape, sizes[1], product(column_sizes))
    # Without a sum a product of matrices would be a product of elements.
    y = ctx.emit(MatMul() if inner else Mul(), left, right)
    y = reshaped(ctx, y, *shape, *row_sizes, *column_sizes)
    return _Operand(y, (*batch, *rows, *columns))
