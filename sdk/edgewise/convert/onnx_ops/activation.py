"""ONNX activations."""

from __future__ import annotations

import functools

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import product
from edgewise.ir.graph import Value
from edgewise.ir.op import OPS, Op
from edgewise.ops.activation import (
    Celu,
    Elu,
    Gelu,
    HardSigmoid,
    LeakyRelu,
    Prelu,
    Selu,
    Sigmoid,
    Silu,
    ThresholdedRelu,
)
from edgewise.ops.binary import Mul
from edgewise.ops.choose import Where
from edgewise.ops.index import OneHot
from edgewise.ops.logic import Less
from edgewise.ops.order import Argmax
from edgewise.ops.shape import Reshape
from edgewise.ops.softmax import LogSoftmax, Softmax

_PLAIN = {
    "HardSwish": "hard_swish",
    "Mish": "mish",
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Tanh": "tanh",
}


def _plain(core: str, ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    return ctx.emit(OPS[core](), ctx[0])


for _name, _core in _PLAIN.items():
    onnx_op(_name)(functools.partial(_plain, _core))


@onnx_op("LeakyRelu")
def _leaky_relu(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    return ctx.emit(LeakyRelu(ctx.attribute("alpha", 0.01)), ctx[0])


@onnx_op("Elu")
def _elu(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    return ctx.emit(Elu(ctx.attribute("alpha", 1.0)), ctx[0])


@onnx_op("Celu")
def _celu(ctx: OpContext) -> Value:
    return ctx.emit(Celu(ctx.attribute("alpha", 1.0)), ctx[0])


@onnx_op("Selu")
def _selu(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    # Before operator set 6 the defaults were shorter decimals of the same numbers.
    alpha, gamma = (1.6732, 1.0507) if ctx.opset < 6 else (_SELU_ALPHA, _SELU_GAMMA)
    alpha = ctx.attribute("alpha", alpha)
    return ctx.emit(Selu(alpha, ctx.attribute("gamma", gamma)), ctx[0])


_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875


@onnx_op("HardSigmoid")
def _hard_sigmoid(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    alpha, beta = ctx.attribute("alpha", 0.2), ctx.attribute("beta", 0.5)
    return ctx.emit(HardSigmoid(alpha, beta), ctx[0])


@onnx_op("ThresholdedRelu")
def _thresholded_relu(ctx: OpContext) -> Value:
    return ctx.emit(ThresholdedRelu(ctx.attribute("alpha", 1.0)), ctx[0])


@onnx_op("Gelu")
def _gelu(ctx: OpContext) -> Value:
    approximate = ctx.attribute("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise ctx.malformed(f"approximate={approximate!r}; want none or tanh")
    return ctx.emit(Gelu(approximate == "tanh"), ctx[0])


@onnx_op("Swish")
def _swish(ctx: OpContext) -> Value:
    x, alpha = ctx[0], ctx.attribute("alpha", 1.0)
    if alpha == 1.0:
        return ctx.emit(Silu(), x)
    gate = ctx.emit(Sigmoid(), ctx.emit(Mul(), x, ctx.like(alpha, x)))
    return ctx.emit(Mul(), x, gate)


@onnx_op("PRelu")
def _prelu(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    x, slope = ctx[0], ctx[1]
    if ctx.opset < 7 and slope.type.rank == 1 and x.type.rank > 2:
        # One slope a channel; numpy's rule came with operator set 7.
        shape = (*slope.type.shape, *(1,) * (x.type.rank - 2))
        slope = ctx.emit(Reshape(shape), slope)
    if x.type.dtype.is_float:
        return ctx.emit(Prelu(), x, slope)
    below = ctx.emit(Less(), x, ctx.like(0, x))
    return ctx.emit(Where(), below, ctx.emit(Mul(), x, slope), x)


@onnx_op("Softmax", "LogSoftmax", since=13)
def _softmax(ctx: OpContext) -> Value:
    axis = ctx.axis(ctx[0].type.rank, -1)
    return ctx.emit(_softmax_op(ctx, axis), ctx[0])


@onnx_op("Softmax", "LogSoftmax")
def _flat_softmax(ctx: OpContext) -> Value:
    """Before operator set 13 all axes from ``axis`` on were one."""
    x = ctx[0]
    rank = x.type.rank
    axis = int(ctx.attribute("axis", 1))
    axis = rank if axis == rank else ctx.normal(axis, rank)
    if axis == rank - 1:
        return ctx.emit(_softmax_op(ctx, axis), x)
    shape = x.type.shape
    flat = ctx.emit(Reshape((product(shape[:axis]), product(shape[axis:]))), x)
    return ctx.emit(Reshape(shape), ctx.emit(_softmax_op(ctx, 1), flat))


def _softmax_op(ctx: OpContext, axis: int) -> Op:
    return Softmax(axis) if ctx.node.op_type == "Softmax" else LogSoftmax(axis)


@onnx_op("Hardmax", since=13)
def _hardmax(ctx: OpContext) -> Value:
    x = ctx[0]
    axis = ctx.axis(x.type.rank, -1)
    if x.type.shape[axis] == 0:
        return x  # of nothing there is no largest
    top = ctx.emit(Argmax(axis, keepdims=False, last=False), x)
    values = ctx.constant(np.array([0, 1], x.type.dtype.numpy))
    return ctx.emit(OneHot(x.type.shape[axis], axis), top, values)
