"""ONNX operators that draw at random."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, part, reshaped, scalar
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Shape
from edgewise.ir.graph import Value
from edgewise.ops.binary import Div, Mul, Sub
from edgewise.ops.choose import Where
from edgewise.ops.create import Fill
from edgewise.ops.logic import GreaterEqual, Less, LessEqual, Or
from edgewise.ops.order import Cumsum
from edgewise.ops.random import RandomNormal, RandomUniform
from edgewise.ops.reduce import ReduceSum
from edgewise.ops.softmax import Softmax
from edgewise.ops.unary import Not
from edgewise.types import DType


@onnx_op("RandomUniform", "RandomUniformLike")
def _random_uniform(ctx: OpContext) -> Value:
    low, high = float(ctx.attribute("low", 0.0)), float(ctx.attribute("high", 1.0))
    op = RandomUniform(_shape(ctx), _dtype(ctx, DType.F32).value, low, high)
    return ctx.emit(op, _seed(ctx))


@onnx_op("RandomNormal", "RandomNormalLike")
def _random_normal(ctx: OpContext) -> Value:
    mean, scale = float(ctx.attribute("mean", 0.0)), float(ctx.attribute("scale", 1.0))
    op = RandomNormal(_shape(ctx), _dtype(ctx, DType.F32).value, mean, scale)
    return ctx.emit(op, _seed(ctx))


def _shape(ctx: OpContext) -> Shape:
    if ctx.node.op_type.endswith("Like"):
        return ctx[0].type.shape
    shape = ctx.attribute("shape")
    if shape is None or any(size < 0 for size in shape):
        raise ctx.malformed(f"its shape is {shape}; want sizes from 0 on")
    return tuple(shape)


def _dtype(ctx: OpContext, default: DType) -> DType:
    code = ctx.attribute("dtype")
    if code is not None:
        return ctx.element_type(code)
    return ctx[0].type.dtype if ctx.inputs else default


def _seed(ctx: OpContext) -> Value | None:
    """The seed as a whole number of its own; ``None``: another at every run."""
    seed = ctx.attribute("seed")
    if not ctx.world.config.random:
        raise ctx.unsupported(
            "draws at random, and no two runtimes draw the same numbers",
            "convert with random=True (--random) where any draw will do",
        )
    if seed is None:
        return None
    bits = np.asarray(seed, np.float32).view(np.uint32)
    return ctx.constant(bits.astype(np.int64))


@onnx_op("Bernoulli", since=15)
def _bernoulli(ctx: OpContext) -> Value:
    chance, dtype = as_type(ctx, ctx[0], DType.F64), _dtype(ctx, DType.F32)
    drawn = ctx.emit(RandomUniform(chance.type.shape, "f64"), _seed(ctx))
    return as_type(ctx, ctx.emit(Less(), drawn, chance), dtype)


@onnx_op("Multinomial", since=7)
def _multinomial(ctx: OpContext) -> Value:
    logs, count = ctx[0], int(ctx.attribute("sample_size", 1))
    if logs.type.rank != 2 or count < 1:
        raise ctx.malformed(f"draws {count} samples from {logs.type}; want [N, C]")
    code = ctx.attribute("dtype")
    dtype = DType.I32 if code is None else ctx.element_type(code)
    n, classes = logs.type.shape
    chances = ctx.emit(Softmax(1), as_type(ctx, logs, DType.F64))
    ends = ctx.emit(Cumsum(1, False, False), chances)
    drawn = ctx.emit(RandomUniform((n, count), "f64"), _seed(ctx))
    drawn = ctx.emit(Mul(), drawn, part(ctx, ends, 1, classes - 1, 1))
    # The class is the number of ends that lie below; the last end is above all.
    ends = reshaped(ctx, part(ctx, ends, 1, 0, classes - 1), n, 1, classes - 1)
    below = ctx.emit(LessEqual(), ends, reshaped(ctx, drawn, n, count, 1))
    counts = as_type(ctx, below, DType.I64)
    return as_type(ctx, ctx.emit(ReduceSum((2,), False), counts), dtype)


@onnx_op("Dropout", since=12)
def _dropout(ctx: OpContext) -> tuple[Value, Value]:
    x, training = ctx[0], ctx.optional(2)
    told = ctx.constant_or_none(2)
    if training is None or (told is not None and not told.any()):
        ctx.ignore("seed")
        return x, ctx.emit(Fill(x.type.shape), ctx.constant(np.array(True)))
    # ONNX says which numbers a whole seed means here.
    seed = ctx.attribute("seed")
    given = _seed(ctx) if seed is None else ctx.constant(np.array(seed, np.int64))
    ratio = ctx.like(0.5, x) if ctx.optional(1) is None else scalar(ctx, 1)
    drawn = ctx.emit(RandomUniform(x.type.shape, "f64"), given)
    kept = ctx.emit(GreaterEqual(), drawn, as_type(ctx, ratio, DType.F64))
    share = ctx.emit(Sub(), ctx.like(1, x), as_type(ctx, ratio, x.type.dtype))
    y = ctx.emit(Where(), kept, ctx.emit(Div(), x, share), ctx.like(0, x))
    if told is not None:
        return y, kept
    now = scalar(ctx, 2)
    mask = ctx.emit(Or(), kept, ctx.emit(Not(), now))
    return ctx.emit(Where(), now, y, x), mask
