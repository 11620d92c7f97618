"""ONNX operators around attention: rotary positions, gates, caches."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import counted, part, reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Dim, floordiv
from edgewise.ir.graph import Value
from edgewise.ops.activation import Sigmoid, Silu
from edgewise.ops.binary import Add, Mod, Mul, Sub
from edgewise.ops.index import Gather
from edgewise.ops.scatter import ScatterElements
from edgewise.ops.shape import Concat, Expand


@onnx_op("RotaryEmbedding", since=23)
def _rotary_embedding(ctx: OpContext) -> Value:
    x = ctx[0]
    shape, rank = x.type.shape, x.type.rank
    heads = ctx.attribute("num_heads", 0)
    if rank == 3:
        if heads < 1 or (isinstance(shape[2], int) and shape[2] % heads):
            raise ctx.malformed(f"{heads} heads do not share the channels of {x.type}")
        x = reshaped(ctx, x, *shape[:2], heads, floordiv(shape[2], heads))
    elif rank != 4:
        raise ctx.malformed(f"its input is {x.type}; want rank 3 or 4")
    size = ctx.whole(x.type.shape[3])
    turned = ctx.attribute("rotary_embedding_dim", 0) or size
    if turned % 2 or not 0 < turned <= size:
        raise ctx.malformed(f"cannot turn {turned} of {size} channels in pairs")
    # Heads lie before positions in rank 4, after them in rank 3.
    cos, sin = (
        _angles(ctx, index, head_axis=rank - 3 if rank == 4 else 2) for index in (1, 2)
    )
    y = _turned(ctx, part(ctx, x, 3, 0, turned), cos, sin)
    if turned < size:
        y = ctx.emit(Concat(3), y, part(ctx, x, 3, turned, size - turned))
    return reshaped(ctx, y, *shape)


def _angles(ctx: OpContext, index: int, head_axis: int) -> Value:
    """Cosines or sines as [batch, position, pair], the same for every head."""
    table, positions = ctx[index], ctx.optional(3)
    if positions is not None:
        table = ctx.emit(Gather(0), table, positions)
    if table.type.rank != 3:
        raise ctx.malformed(f"its input {index} gives {table.type}; want 3 axes")
    shape = list(table.type.shape)
    shape.insert(head_axis, 1)
    return reshaped(ctx, table, *shape)


def _turned(ctx: OpContext, x: Value, cos: Value, sin: Value) -> Value:
    """Every pair of channels turned by its angle."""
    shape = x.type.shape
    half = floordiv(shape[3], 2)
    interleaved = bool(ctx.attribute("interleaved", 0))
    if interleaved:
        a, b = part(ctx, x, 3, 0, half, 2), part(ctx, x, 3, 1, half, 2)
    else:
        a, b = part(ctx, x, 3, 0, half), part(ctx, x, 3, half, half)
    real = ctx.emit(Sub(), ctx.emit(Mul(), cos, a), ctx.emit(Mul(), sin, b))
    imaginary = ctx.emit(Add(), ctx.emit(Mul(), sin, a), ctx.emit(Mul(), cos, b))
    if not interleaved:
        return ctx.emit(Concat(3), real, imaginary)
    pairs = (reshaped(ctx, y, *shape[:3], half, 1) for y in (real, imaginary))
    return reshaped(ctx, ctx.emit(Concat(4), *pairs), *shape)


@onnx_op("SwiGLU", since=28)
def _swiglu(ctx: OpContext) -> Value:
    gate, value, alpha = ctx[0], ctx[1], ctx.attribute("alpha", 1.0)
    if gate.type.shape != value.type.shape:
        raise ctx.malformed(
            f"its inputs are {gate.type} and {value.type}; want one shape"
        )
    if alpha == 1.0:
        return ctx.emit(Mul(), ctx.emit(Silu(), gate), value)
    slope = ctx.emit(Mul(), gate, ctx.like(alpha, gate))
    swish = ctx.emit(Mul(), gate, ctx.emit(Sigmoid(), slope))
    return ctx.emit(Mul(), swish, value)


@onnx_op("TensorScatter", since=24)
def _tensor_scatter(ctx: OpContext) -> Value:
    cache, update, starts = ctx[0], ctx[1], ctx.optional(2)
    mode = ctx.attribute("mode", "linear")
    if mode not in ("linear", "circular"):
        raise ctx.malformed(f"mode={mode!r}; want linear or circular")
    axis = ctx.axis(cache.type.rank, -2)
    if axis == 0 or update.type.rank != cache.type.rank:
        raise ctx.malformed(f"writes {update.type} into axis {axis} of {cache.type}")
    column = (1,) * (cache.type.rank - axis - 1)
    length = update.type.shape[axis]
    places = counted(ctx, 0, length, length, *column)
    if starts is not None:
        batch: tuple[Dim, ...] = (update.type.shape[0], *(1,) * (cache.type.rank - 1))
        places = ctx.emit(Add(), places, reshaped(ctx, starts, *batch))
    if mode == "circular":
        size = ctx.constant(np.array(ctx.whole(cache.type.shape[axis])))
        places = ctx.emit(Mod(False), places, size)
    places = ctx.emit(Expand(update.type.shape), places)
    return ctx.emit(ScatterElements(axis, "none"), cache, places, update)
