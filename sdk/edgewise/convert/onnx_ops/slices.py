"""ONNX operators that take ranges: Slice and Split."""

from __future__ import annotations

from typing import TypeAlias

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.late_slices import picked, sliced
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.symbolic_rules import at_least, clamp
from edgewise.convert.vectors import Vector
from edgewise.dims import Dim, Shape, ceildiv, maximum
from edgewise.ir.graph import Value
from edgewise.ops.shape import Slice

FAR = 2**31 - 1  # exporters write "to the end" as this or more


@onnx_op("Slice")
def _slice(ctx: OpContext) -> Value:
    rank = ctx[0].type.rank
    if any(ctx.late(index, 10) for index in (3, 4)):
        return picked(ctx)
    starts, ends, given, steps = _ranges(ctx)
    axes = tuple(range(len(starts))) if given is None else given
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ctx.malformed("its starts, ends, axes and steps differ in number")
    normal = [ctx.normal(axis, rank) for axis in axes]
    if len(set(normal)) != len(normal):
        raise ctx.malformed(f"its axes {list(axes)} repeat one")
    if 0 in steps:
        raise ctx.malformed("its step is 0")
    begins: list[Dim] = [0] * rank
    sizes, strides = list(ctx[0].type.shape), [1] * rank
    found = [
        _range(sizes[axis], start, end, step)
        for axis, start, end, step in zip(normal, starts, ends, steps, strict=True)
    ]
    for axis, step, pair in zip(normal, steps, found, strict=True):
        if pair is None:
            return sliced(ctx, normal, steps, found)
        begins[axis], sizes[axis] = pair
        strides[axis] = step
    return ctx.emit(Slice(tuple(begins), tuple(sizes), tuple(strides)), ctx[0])


_Bounds: TypeAlias = "tuple[Dim | None, ...]"


def _ranges(
    ctx: OpContext,
) -> tuple[_Bounds, _Bounds, tuple[int, ...] | None, tuple[int, ...]]:
    if ctx.opset < 10:
        starts, ends = ctx.attribute("starts"), ctx.attribute("ends")
        if starts is None or ends is None:
            raise ctx.malformed("its starts or ends are missing")
        return starts, ends, ctx.attribute("axes"), (1,) * len(starts)
    starts, ends = (tuple(Vector.input(ctx, index).known) for index in (1, 2))
    steps = ctx.integers(4)
    return starts, ends, ctx.integers(3), steps or (1,) * len(starts)


def _range(
    size: Dim, start: Dim | None, end: Dim | None, step: int
) -> tuple[Dim, Dim] | None:
    """First index and number of elements as ONNX clamps them; ``None``: a run knows."""
    start, end = _from_front(start, size), _from_front(end, size)
    if start is None or end is None:
        return None
    if step > 0:
        start, end = clamp(start, 0, size), clamp(end, 0, size)
        length = ceildiv(end - start, step)
    else:
        start, end = clamp(start, 0, size - 1), clamp(end, -1, size - 1)
        length = ceildiv(start - end, -step)
    return start, length if at_least(length, 0) else maximum(length, 0)


def _from_front(index: Dim | None, size: Dim) -> Dim | None:
    if index is None or isinstance(index, int):
        if index is None:
            return None
        if index >= FAR:
            return size
        if index <= -FAR:
            return -1
        return index + size if index < 0 else index
    if at_least(index, 0):
        return index
    if at_least(-1, index):
        return index + size
    return None


@onnx_op("Split")
def _split(ctx: OpContext) -> tuple[Value, ...]:
    x = ctx[0]
    axis = ctx.axis(x.type.rank, 0)
    size = x.type.shape[axis]
    given = ctx.attribute("split") if ctx.opset < 13 else ctx.sizes(1)
    parts = _even_parts(ctx, size) if given is None else tuple(given)
    if len(parts) != len(ctx.node.output):
        raise ctx.malformed(f"{len(parts)} parts for {len(ctx.node.output)} outputs")
    total: Dim = 0
    outputs = []
    for part in parts:
        starts: list[Dim] = [0] * x.type.rank
        sizes = list(x.type.shape)
        starts[axis], sizes[axis] = total, part
        op = Slice(tuple(starts), tuple(sizes), (1,) * x.type.rank)
        outputs.append(ctx.emit(op, x))
        total = total + part
    if isinstance(total, int) and isinstance(size, int) and total != size:
        raise ctx.malformed(f"its parts {list(parts)} do not make up {size}")
    return tuple(outputs)


def _even_parts(ctx: OpContext, size: Dim) -> Shape:
    count = int(ctx.attribute("num_outputs", len(ctx.node.output)))
    if count < 1:
        raise ctx.malformed(f"num_outputs={count}")
    each = ceildiv(size, count)
    if ctx.opset < 18 and each * count != size:
        raise ctx.malformed(f"{size} does not split into {count} equal parts")
    return (*(each,) * (count - 1), size - each * (count - 1))
