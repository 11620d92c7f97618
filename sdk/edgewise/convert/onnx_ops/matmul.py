"""ONNX matrix products."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Mul
from edgewise.ops.matmul import MatMul
from edgewise.ops.shape import Reshape, Transpose


@onnx_op("MatMul")
def _matmul(ctx: OpContext) -> Value:
    return _product(ctx, ctx[0], ctx[1])


def _product(ctx: OpContext, a: Value, b: Value) -> Value:
    """The numpy product; vectors become matrices and their axes vanish again."""
    if not a.type.rank or not b.type.rank:
        raise ctx.malformed("multiplies a scalar as a matrix")
    left, right = a.type.rank == 1, b.type.rank == 1
    if left:
        a = ctx.emit(Reshape((1, *a.type.shape)), a)
    if right:
        b = ctx.emit(Reshape((*b.type.shape, 1)), b)
    y = ctx.emit(MatMul(), a, b)
    shape = list(y.type.shape)
    if right:
        del shape[-1]
    if left:
        del shape[len(shape) - (1 if right else 2)]
    return ctx.emit(Reshape(tuple(shape)), y) if left or right else y


@onnx_op("Gemm")
def _gemm(ctx: OpContext) -> Value:
    a, b, c = ctx[0], ctx[1], ctx.optional(2)
    if a.type.rank != 2 or b.type.rank != 2:
        raise ctx.malformed(f"multiplies {a.type} and {b.type}; want two matrices")
    ctx.ignore("broadcast")
    if ctx.attribute("transA", 0):
        a = ctx.emit(Transpose((1, 0)), a)
    if ctx.attribute("transB", 0):
        b = ctx.emit(Transpose((1, 0)), b)
    y = _scaled(ctx, ctx.emit(MatMul(), a, b), ctx.attribute("alpha", 1.0))
    beta = ctx.attribute("beta", 1.0)
    return y if c is None or not beta else ctx.emit(Add(), y, _scaled(ctx, c, beta))


def _scaled(ctx: OpContext, x: Value, factor: float) -> Value:
    return x if factor == 1 else ctx.emit(Mul(), x, ctx.like(factor, x))
