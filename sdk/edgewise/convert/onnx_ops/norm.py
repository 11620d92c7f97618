"""ONNX normalisations."""

from __future__ import annotations

from collections.abc import Callable

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import Outputs, onnx_op
from edgewise.convert.onnx_ops.spatial import channels_last, with_channels
from edgewise.dims import product
from edgewise.ir.graph import Value
from edgewise.ops.binary import Add, Div, Mul, Sub
from edgewise.ops.choose import Where
from edgewise.ops.logic import Equal
from edgewise.ops.norm import (
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    Lrn,
    RmsNorm,
)
from edgewise.ops.reduce import ReduceL1, ReduceL2, ReduceMean
from edgewise.ops.shape import Expand, Reshape
from edgewise.ops.unary import Reciprocal, Sqrt


@onnx_op("InstanceNormalization")
def _instance_norm(ctx: OpContext) -> Value:
    ctx.ignore("consumed_inputs")
    op = InstanceNorm(ctx.attribute("epsilon", 1e-5))
    return _flat_image(ctx, ctx[0], lambda image: ctx.emit(op, image, ctx[1], ctx[2]))


@onnx_op("GroupNormalization", since=18)
def _group_norm(ctx: OpContext) -> Value:
    ctx.ignore("stash_type")
    x, scale, shift = ctx[0], ctx[1], ctx[2]
    groups = int(ctx.attribute("num_groups", 0))
    if x.type.rank < 2:
        raise ctx.malformed(f"its input is {x.type}; want [N, C, ...]")
    # From operator set 21 on there is a scale for each channel.
    if ctx.opset >= 21 and scale.type.rank == 1:
        x = with_channels(ctx, x, ctx.whole(scale.type.shape[0]))
    channels = ctx.whole(x.type.shape[1])
    if groups < 1 or channels % groups:
        raise ctx.malformed(f"splits {channels} channels into {groups} groups")
    if ctx.opset < 21:  # one scale and shift a group
        scale = _repeated(ctx, scale, groups, channels // groups)
        shift = _repeated(ctx, shift, groups, channels // groups)
    op = GroupNorm(groups, ctx.attribute("epsilon", 1e-5))
    return _flat_image(ctx, x, lambda image: ctx.emit(op, image, scale, shift))


def _repeated(ctx: OpContext, values: Value, groups: int, each: int) -> Value:
    column = ctx.emit(Reshape((groups, 1)), values)
    return ctx.emit(Reshape((groups * each,)), ctx.emit(Expand((groups, each)), column))


def _flat_image(ctx: OpContext, x: Value, apply: Callable[[Value], Value]) -> Value:
    """``apply`` to ``x`` as a channels-last image, whatever its spatial axes."""
    shape = x.type.shape
    if x.type.rank < 2:
        raise ctx.malformed(f"its input is {x.type}; want [N, C, ...]")
    if x.type.rank in (3, 4):
        return channels_last(ctx, x, apply)
    flat = ctx.emit(Reshape((*shape[:2], product(shape[2:]))), x)
    return ctx.emit(Reshape(shape), channels_last(ctx, flat, apply))


@onnx_op("LayerNormalization", since=17)
def _layer_norm(ctx: OpContext) -> Outputs:
    ctx.ignore("stash_type")
    axis = ctx.axis(ctx[0].type.rank, -1)
    op = LayerNorm(axis, ctx.attribute("epsilon", 1e-5))
    wanted = ctx[0].type.shape[axis:]
    scale, shift = (_whole_shape(ctx, i, wanted) for i in (1, 2))
    y = ctx.emit(op, ctx[0], scale, shift)
    return y if len(ctx.node.output) == 1 else (y, *_moments(ctx, op))


def _moments(ctx: OpContext, op: LayerNorm) -> tuple[Value, Value]:
    """Mean and inverse standard deviation, for those who ask."""
    x = ctx[0]
    average = ReduceMean(tuple(range(op.axis, x.type.rank)), True)
    mean = ctx.emit(average, x)
    off = ctx.emit(Sub(), x, mean)
    variance = ctx.emit(average, ctx.emit(Mul(), off, off))
    spread = ctx.emit(Sqrt(), ctx.emit(Add(), variance, ctx.like(op.eps, x)))
    return mean, ctx.emit(Reciprocal(), spread)


@onnx_op("RMSNormalization", since=23)
def _rms_norm(ctx: OpContext) -> Value:
    ctx.ignore("stash_type")
    axis = ctx.axis(ctx[0].type.rank, -1)
    op = RmsNorm(axis, ctx.attribute("epsilon", 1e-5))
    scale = _whole_shape(ctx, 1, ctx[0].type.shape[axis:])
    return ctx.emit(op, ctx[0], scale)


def _whole_shape(
    ctx: OpContext, index: int, wanted: tuple[object, ...]
) -> Value | None:
    """A scale or shift in the shape of its axes; ONNX lets it broadcast."""
    value = ctx.optional(index)
    if value is None or value.type.shape == wanted:
        return value
    return ctx.emit(Expand(wanted), value)


@onnx_op("LRN")
def _lrn(ctx: OpContext) -> Value:
    size = int(ctx.attribute("size", 0))
    if size < 1:
        raise ctx.malformed(f"size={size}; want 1 or more")
    alpha, beta = ctx.attribute("alpha", 1e-4), ctx.attribute("beta", 0.75)
    op = Lrn(size, alpha, beta, ctx.attribute("bias", 1.0))
    return _flat_image(ctx, ctx[0], lambda image: ctx.emit(op, image))


@onnx_op("LpNormalization")
def _lp_norm(ctx: OpContext) -> Value:
    axis, p = ctx.axis(ctx[0].type.rank, -1), ctx.attribute("p", 2)
    if p not in (1, 2):
        raise ctx.malformed(f"p={p}; want 1 or 2")
    reduce = ReduceL1((axis,), True) if p == 1 else ReduceL2((axis,), True)
    norm = ctx.emit(reduce, ctx[0])
    # What has no length stays zero.
    none = ctx.emit(Equal(), norm, ctx.like(0, norm))
    return ctx.emit(Div(), ctx[0], ctx.emit(Where(), none, ctx.like(1, norm), norm))


@onnx_op("MeanVarianceNormalization", since=9)
def _mean_variance(ctx: OpContext) -> Value:
    x = ctx[0]
    # Of a line, the default is all axes that it has but its channels.
    default = tuple(axis for axis in (0, 2, 3) if axis < x.type.rank)
    given = ctx.attribute("axes", default)
    mean = ReduceMean(tuple(ctx.normal(axis, x.type.rank) for axis in given), True)
    off = ctx.emit(Sub(), x, ctx.emit(mean, x))
    # In two passes: the square of the mean would drown the variance.
    variance = ctx.emit(mean, ctx.emit(Mul(), off, off))
    spread = ctx.emit(Add(), ctx.emit(Sqrt(), variance), ctx.like(_TINY, x))
    return ctx.emit(Div(), off, spread)


_TINY = 1e-9  # the number in the operator's text
