"""ONNX operators of sequences and optionals."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.inputs import held_type
from edgewise.convert.kinds import open_shape
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.run_time import integer, scalar
from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops.optional import Optional, OptionalGetElement, OptionalHasElement
from edgewise.ops.sequence import (
    ConcatFromSequence,
    SequenceAt,
    SequenceConstruct,
    SequenceEmpty,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SplitToSequence,
)
from edgewise.types import (
    DType,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
)


@onnx_op("SequenceEmpty", since=11)
def _empty(ctx: OpContext) -> Value:
    code = ctx.attribute("dtype")
    dtype = DType.F32 if code is None else ctx.element_type(code)
    return ctx.emit(SequenceEmpty(dtype.value))


@onnx_op("SequenceConstruct", since=11)
def _construct(ctx: OpContext) -> Value:
    return ctx.emit(SequenceConstruct(), *ctx.all())


@onnx_op("SequenceInsert", since=11)
def _insert(ctx: OpContext) -> Value:
    xs, x = ctx[0], ctx[1]
    empty = isinstance(xs.op, SequenceEmpty) and _at_start(ctx)
    if empty and xs.kind == SequenceType(Unranked(x.type.dtype)):
        # What an empty sequence may hold has no shape; its first tensor has one.
        return ctx.emit(SequenceConstruct(), x)
    return ctx.emit(SequenceInsert(), ctx[0], ctx[1], _position(ctx, 2))


def _at_start(ctx: OpContext) -> bool:
    """Whether the only place in an empty sequence is given, or none."""
    position = ctx.constant_or_none(2)
    return ctx.optional(2) is None or (position is not None and not position.any())


@onnx_op("SequenceErase", since=11)
def _erase(ctx: OpContext) -> Value:
    return ctx.emit(SequenceErase(), ctx[0], _position(ctx, 1))


@onnx_op("SequenceAt", since=11)
def _at(ctx: OpContext) -> Value:
    shape = open_shape(ctx, _held(ctx))
    return ctx.emit(SequenceAt(shape), ctx[0], scalar(ctx, ctx[1]))


@onnx_op("SequenceLength", since=11)
def _length(ctx: OpContext) -> Value:
    return ctx.emit(SequenceLength(), ctx[0])


@onnx_op("SplitToSequence", since=11)
def _split(ctx: OpContext) -> Value:
    axis, split = ctx.axis(ctx[0].type.rank, 0), ctx.optional(1)
    keepdims = bool(ctx.attribute("keepdims", 1))
    if split is not None:
        return ctx.emit(SplitToSequence(axis), ctx[0], integer(ctx, split))
    return ctx.emit(SplitToSequence(axis, keepdims), ctx[0])


@onnx_op("ConcatFromSequence", since=11)
def _concat(ctx: OpContext) -> Value:
    sizes: list[Dim] = list(open_shape(ctx, _held(ctx)))
    new = bool(ctx.attribute("new_axis", 0))
    axis = ctx.axis(len(sizes) + new, 0)
    sizes[axis : axis if new else axis + 1] = ctx.fresh(1)
    return ctx.emit(ConcatFromSequence(axis, new, tuple(sizes)), ctx[0])


def _position(ctx: OpContext, index: int) -> Value | None:
    return None if ctx.optional(index) is None else scalar(ctx, ctx[index])


def _held(ctx: OpContext) -> TensorType | Unranked:
    kind = ctx[0].kind
    if not isinstance(kind, SequenceType):
        raise ctx.malformed(f"its input is {kind}; want a sequence")
    return kind.element


@onnx_op("Optional", since=15)
def _optional(ctx: OpContext) -> Value:
    value, declared = ctx.optional(0), ctx.attribute("type")
    if value is not None:
        kind = value.kind
        if isinstance(kind, OptionalType):
            raise ctx.malformed(f"makes an optional of {kind}")
        return ctx.emit(Optional.giving((OptionalType(kind),)), value)
    if declared is None:
        raise ctx.malformed("has neither an input nor a type")
    where = f"the type of node {ctx.name!r}"
    held = held_type(ctx.world.parsed, declared, where)
    return ctx.emit(Optional.giving((OptionalType(held),)))


@onnx_op("OptionalHasElement", since=15)
def _has_element(ctx: OpContext) -> Value:
    return ctx.emit(OptionalHasElement(), ctx.optional(0))


@onnx_op("OptionalGetElement", since=15)
def _get_element(ctx: OpContext) -> Value:
    kind = ctx[0].kind
    if not isinstance(kind, OptionalType):
        return ctx[0]
    held = kind.element
    if not isinstance(held, SequenceType):
        held = TensorType(held.dtype, open_shape(ctx, held))
    return ctx.emit(OptionalGetElement.giving((held,)), ctx[0])
