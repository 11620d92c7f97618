"""ONNX's preview of training: one step of an optimizer over several tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import as_type, scalar
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Div, Mul, Pow, Sub
from edgewise.ops.choose import Where
from edgewise.ops.logic import Greater
from edgewise.ops.unary import Sqrt

_DOMAIN = "ai.onnx.preview.training"
# Of a tensor, its gradient and its memories: the new tensor and the new memories.
_Step: TypeAlias = Callable[..., tuple[Value, ...]]


def _each(ctx: OpContext, memories: int, step: _Step) -> tuple[Value, ...]:
    """``step`` for every tensor: tensors come first, then gradients, then memories."""
    values = ctx.all()[2:]
    count, rest = divmod(len(values), 2 + memories)
    if rest or not count:
        raise ctx.malformed(f"{len(values)} tensors are not {2 + memories} for each")
    groups = [values[start::count] for start in range(count)]
    results = [step(*group) for group in groups]
    return tuple(value for column in zip(*results, strict=True) for value in column)


def _scaled(ctx: OpContext, x: Value, factor: float) -> Value:
    return x if factor == 1 else ctx.emit(Mul(), x, ctx.like(factor, x))


def _regular(ctx: OpContext, x: Value, gradient: Value) -> Value:
    """The gradient with that of half the squared length of ``x``."""
    factor = ctx.attribute("norm_coefficient", 0.0)
    if not factor:
        return gradient
    return ctx.emit(Add(), _scaled(ctx, x, factor), gradient)


def _root(ctx: OpContext, squares: Value, default: float) -> Value:
    """Square roots, moved away from zero."""
    tiny = ctx.like(ctx.attribute("epsilon", default), squares)
    return ctx.emit(Add(), ctx.emit(Sqrt(), squares), tiny)


def _moved(ctx: OpContext, x: Value, rate: Value, direction: Value) -> Value:
    rate = as_type(ctx, rate, x.type.dtype)
    return ctx.emit(Sub(), x, ctx.emit(Mul(), rate, direction))


@onnx_op("Adagrad", domain=_DOMAIN)
def _adagrad(ctx: OpContext) -> tuple[Value, ...]:
    rate = scalar(ctx, 0)
    decay = _scaled(
        ctx,
        as_type(ctx, scalar(ctx, 1), rate.type.dtype),
        ctx.attribute("decay_factor", 0.0),
    )
    rate = ctx.emit(Div(), rate, ctx.emit(Add(), decay, ctx.like(1, rate)))

    def step(x: Value, gradient: Value, squares: Value) -> tuple[Value, ...]:
        g = _regular(ctx, x, gradient)
        h = ctx.emit(Add(), squares, ctx.emit(Mul(), g, g))
        direction = ctx.emit(Div(), g, _root(ctx, h, 0.0))
        return _moved(ctx, x, rate, direction), h

    return _each(ctx, 1, step)


@onnx_op("Momentum", domain=_DOMAIN)
def _momentum(ctx: OpContext) -> tuple[Value, ...]:
    rate, alpha = scalar(ctx, 0), ctx.attribute("alpha", 0.0)
    mode, beta = ctx.attribute("mode"), ctx.attribute("beta", 1.0)
    if mode not in ("standard", "nesterov"):
        raise ctx.malformed(f"mode={mode!r}; want standard or nesterov")
    begun = ctx.emit(Greater(), scalar(ctx, 1), ctx.constant(np.array(0)))

    def step(x: Value, gradient: Value, momentum: Value) -> tuple[Value, ...]:
        g = _regular(ctx, x, gradient)
        share = ctx.emit(Where(), begun, ctx.like(beta, x), ctx.like(1, x))
        kept = _scaled(ctx, momentum, alpha)
        v = ctx.emit(Add(), kept, ctx.emit(Mul(), share, g))
        if mode == "standard":
            return _moved(ctx, x, rate, v), v
        direction = ctx.emit(Add(), g, _scaled(ctx, v, alpha))
        return _moved(ctx, x, rate, direction), v

    return _each(ctx, 1, step)


@onnx_op("Adam", domain=_DOMAIN)
def _adam(ctx: OpContext) -> tuple[Value, ...]:
    alpha, beta = ctx.attribute("alpha", 0.9), ctx.attribute("beta", 0.999)
    post = ctx.attribute("norm_coefficient_post", 0.0)
    rate = _adam_rate(ctx, alpha, beta)

    def step(x: Value, gradient: Value, v: Value, h: Value) -> tuple[Value, ...]:
        g = _regular(ctx, x, gradient)
        v = ctx.emit(Add(), _scaled(ctx, v, alpha), _scaled(ctx, g, 1 - alpha))
        square = ctx.emit(Mul(), g, g)
        h = ctx.emit(Add(), _scaled(ctx, h, beta), _scaled(ctx, square, 1 - beta))
        direction = ctx.emit(Div(), v, _root(ctx, h, 1e-6))
        moved = _moved(ctx, x, rate, direction)
        return _scaled(ctx, moved, 1 - post), v, h

    return _each(ctx, 2, step)


def _adam_rate(ctx: OpContext, alpha: float, beta: float) -> Value:
    """The learning rate, corrected for averages that began at zero."""
    rate, turn = scalar(ctx, 0), scalar(ctx, 1)
    one, count = ctx.like(1, rate), as_type(ctx, turn, rate.type.dtype)
    first, second = (
        ctx.emit(Sub(), one, ctx.emit(Pow(), ctx.like(base, rate), count))
        for base in (alpha, beta)
    )
    corrected = ctx.emit(Div(), ctx.emit(Mul(), rate, ctx.emit(Sqrt(), second)), first)
    begun = ctx.emit(Greater(), turn, ctx.constant(np.array(0)))
    return ctx.emit(Where(), begun, corrected, rate)
