"""ONNX BatchNormalization: by stored statistics, and by those of the batch."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import Outputs, onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Div, Mul, Sub
from edgewise.ops.choose import Cast
from edgewise.ops.norm import BatchNorm
from edgewise.ops.reduce import ReduceMean
from edgewise.ops.shape import Reshape
from edgewise.ops.unary import Sqrt
from edgewise.types import DType


class _Statistics(NamedTuple):
    mean: Value
    variance: Value


@onnx_op("BatchNormalization")
def _batch_norm(ctx: OpContext) -> Outputs:
    ctx.ignore("consumed_inputs")
    if ctx[0].type.rank < 2:
        raise ctx.malformed(f"its input is {ctx[0].type}; want [N, C, ...]")
    momentum = ctx.attribute("momentum", 0.9)
    kind = ctx[3].type.dtype  # statistics may be of a wider type than the data
    x = _cast(ctx, ctx[0], kind)
    stored = _Statistics(ctx[3], _cast(ctx, ctx[4], kind))
    if not _trains(ctx):
        return _normalised(ctx, x, stored)
    batch = _of_batch(ctx, x)
    moved = [_moved(ctx, *pair, momentum) for pair in zip(stored, batch, strict=True)]
    return (_normalised(ctx, x, batch), *moved, *batch)


def _trains(ctx: OpContext) -> bool:
    """Whether the batch's own statistics count."""
    is_test = ctx.attribute("is_test", 0)
    if ctx.opset >= 14:
        return bool(ctx.attribute("training_mode", 0))
    # Before, a node that gives statistics out was one that trains.
    return not is_test and any(ctx.node.output[1:])


def _cast(ctx: OpContext, x: Value, kind: DType) -> Value:
    return x if x.type.dtype is kind else ctx.emit(Cast(kind.value), x)


def _normalised(ctx: OpContext, x: Value, by: _Statistics) -> Value:
    kind, eps = x.type.dtype, ctx.attribute("epsilon", 1e-5)
    scale, shift = (_cast(ctx, ctx[index], kind) for index in (1, 2))
    if ctx.attribute("spatial", 1):
        y = ctx.emit(BatchNorm(1, eps), x, scale, shift, *by)
    else:  # a mean and a variance for every place
        spread = ctx.emit(Sqrt(), ctx.emit(Add(), by.variance, ctx.like(eps, x)))
        y = ctx.emit(Div(), ctx.emit(Sub(), x, by.mean), spread)
        y = ctx.emit(Add(), ctx.emit(Mul(), y, scale), shift)
    return _cast(ctx, y, ctx[0].type.dtype)


def _of_batch(ctx: OpContext, x: Value) -> _Statistics:
    """Mean and variance, in two passes."""
    over = range(2, x.type.rank) if ctx.attribute("spatial", 1) else ()
    average = ReduceMean((0, *over), True)
    mean = ctx.emit(average, x)
    off = ctx.emit(Sub(), x, mean)
    variance = ctx.emit(average, ctx.emit(Mul(), off, off))
    shape = ctx[3].type.shape
    return _Statistics(*(ctx.emit(Reshape(shape), v) for v in (mean, variance)))


def _moved(ctx: OpContext, old: Value, new: Value, momentum: float) -> Value:
    """The running statistic, a step nearer to that of the batch."""
    kept = ctx.emit(Mul(), old, ctx.like(momentum, old))
    return ctx.emit(Add(), kept, ctx.emit(Mul(), new, ctx.like(1 - momentum, old)))
