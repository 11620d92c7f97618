"""ONNX losses over class labels."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.binary import Div, Mul
from edgewise.ops.choose import Where
from edgewise.ops.create import Fill
from edgewise.ops.index import Gather, GatherElements
from edgewise.ops.logic import Equal
from edgewise.ops.reduce import ReduceMean, ReduceSum
from edgewise.ops.softmax import LogSoftmax
from edgewise.ops.unary import Neg


@onnx_op("NegativeLogLikelihoodLoss", since=12)
def _negative_log_likelihood(ctx: OpContext) -> Value:
    return _loss(ctx, ctx[0])


@onnx_op("SoftmaxCrossEntropyLoss", since=12)
def _softmax_cross_entropy(ctx: OpContext) -> tuple[Value, Value]:
    logs = ctx.emit(LogSoftmax(ctx.normal(1, ctx[0].type.rank)), ctx[0])
    return _loss(ctx, logs), logs


def _loss(ctx: OpContext, logs: Value) -> Value:
    """The loss of logarithms [N, C, …] at labels [N, …], as ``reduction`` says."""
    labels, reduction = ctx[1], ctx.attribute("reduction", "mean")
    if logs.type.rank < 2 or labels.type.rank != logs.type.rank - 1:
        raise ctx.malformed(f"takes {labels.type} as labels of {logs.type}")
    if reduction not in ("none", "sum", "mean"):
        raise ctx.malformed(f"reduction={reduction!r}; want none, sum or mean")
    ignored = None
    if (number := ctx.attribute("ignore_index")) is not None:
        ignored = ctx.emit(Equal(), labels, ctx.like(number, labels))
        labels = ctx.emit(Where(), ignored, ctx.like(0, labels), labels)
    shape = labels.type.shape
    rows = reshaped(ctx, labels, shape[0], 1, *shape[1:])
    picked = reshaped(ctx, ctx.emit(GatherElements(1), logs, rows), *shape)
    loss, shares = ctx.emit(Neg(), picked), _shares(ctx, logs, labels, ignored)
    if ctx.optional(2) is not None and shares is not None:
        loss = ctx.emit(Mul(), loss, shares)
    if ignored is not None:
        loss = ctx.emit(Where(), ignored, ctx.like(0, loss), loss)
    if reduction == "none":
        return loss
    axes = tuple(range(loss.type.rank))
    if reduction == "mean" and shares is None:
        return ctx.emit(ReduceMean(axes, False), loss)
    total = ctx.emit(ReduceSum(axes, False), loss)
    if reduction == "sum" or shares is None:
        return total
    return ctx.emit(Div(), total, ctx.emit(ReduceSum(axes, False), shares))


def _shares(
    ctx: OpContext, logs: Value, labels: Value, ignored: Value | None
) -> Value | None:
    """How much each label counts in the mean; ``None`` where all count the same."""
    weight, one = ctx.optional(2), ctx.constant(np.ones((), logs.type.dtype.numpy))
    if weight is not None:
        shares = ctx.emit(Gather(0), weight, labels)
    elif ignored is None:
        return None
    else:
        shares = ctx.emit(Fill(labels.type.shape), one)
    if ignored is None:
        return shares
    return ctx.emit(Where(), ignored, ctx.like(0, shares), shares)
