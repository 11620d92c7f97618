"""ONNX operators that draw at random."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, part, reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Shape
from edgewise.ir.graph import Value
from edgewise.ops.binary import Mul
from edgewise.ops.logic import Less, LessEqual
from edgewise.ops.order import Cumsum
from edgewise.ops.random import RandomNormal, RandomUniform
from edgewise.ops.reduce import ReduceSum
from edgewise.ops.softmax import Softmax
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
