"""ONNX operators that take or add ranges: Slice, Split, Pad."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.convert.symbolic_rules import at_least, clamp
from edgewise.dims import Dim, Shape, ceildiv, maximum
from edgewise.ir.graph import Value
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Slice

FAR = 2**31 - 1  # exporters write "to the end" as this or more


@onnx_op("Slice")
def _slice(ctx: OpContext) -> Value:
    rank = ctx[0].type.rank
    starts, ends, given, steps = _ranges(ctx)
    axes = tuple(range(len(starts))) if given is None else given
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ctx.malformed("its starts, ends, axes and steps differ in number")
    begins: list[Dim] = [0] * rank
    sizes, strides = list(ctx[0].type.shape), [1] * rank
    normal = [ctx.normal(axis, rank) for axis in axes]
    if len(set(normal)) != len(normal):
        raise ctx.malformed(f"its axes {list(axes)} repeat one")
    for axis, start, end, step in zip(normal, starts, ends, steps, strict=True):
        if step == 0:
            raise ctx.malformed("its step is 0")
        begins[axis], sizes[axis] = _range(ctx, sizes[axis], start, end, step)
        strides[axis] = step
    return ctx.emit(Slice(tuple(begins), tuple(sizes), tuple(strides)), ctx[0])


def _ranges(
    ctx: OpContext,
) -> tuple[Shape, Shape, tuple[int, ...] | None, tuple[int, ...]]:
    if ctx.opset < 10:
        starts, ends = ctx.attribute("starts"), ctx.attribute("ends")
        axes, steps = ctx.attribute("axes"), None
    else:
        starts, ends = ctx.sizes(1), ctx.sizes(2)
        axes, steps = ctx.integers(3), ctx.integers(4)
    if starts is None or ends is None:
        raise ctx.malformed("its starts or ends are missing")
    return starts, ends, axes, (1,) * len(starts) if steps is None else steps


def _range(
    ctx: OpContext, size: Dim, start: Dim, end: Dim, step: int
) -> tuple[Dim, Dim]:
    """First index and number of elements, as ONNX clamps them."""
    start, end = _from_front(ctx, start, size), _from_front(ctx, end, size)
    if step > 0:
        start, end = clamp(start, 0, size), clamp(end, 0, size)
        length = ceildiv(end - start, step)
    else:
        start, end = clamp(start, 0, size - 1), clamp(end, -1, size - 1)
        length = ceildiv(start - end, -step)
    return start, length if at_least(length, 0) else maximum(length, 0)


def _from_front(ctx: OpContext, index: Dim, size: Dim) -> Dim:
    if isinstance(index, int):
        if index >= FAR:
            return size
        if index <= -FAR:
            return -1
        return index + size if index < 0 else index
    if at_least(index, 0):
        return index
    if at_least(-1, index):
        return index + size
    raise ctx.unsupported(
        f"starts or ends at {index}, of unknown sign", "give fixed input_shapes"
    )


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


@onnx_op("Pad")
def _pad(ctx: OpContext) -> Value:
    x = ctx[0]
    mode = ctx.attribute("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise ctx.malformed(f"mode={mode!r}")
    pads, value = _amounts(ctx)
    if len(pads) != 2 * x.type.rank:
        raise ctx.malformed(f"its pads {list(pads)} do not fit {x.type}")
    return ctx.emit(Pad(pads, mode, value), x)


def _amounts(ctx: OpContext) -> tuple[Shape, float]:
    if ctx.opset < 11:
        pads = ctx.attribute("paddings" if ctx.opset < 2 else "pads")
        if pads is None:
            raise ctx.malformed("its pads are missing")
        return tuple(pads), float(ctx.attribute("value", 0.0))
    sizes, value = ctx.sizes(1), ctx.fixed(2)
    if sizes is None:
        raise ctx.malformed("its pads are missing")
    number = 0.0 if value is None else float(value.reshape(()))
    axes = ctx.integers(3)
    if axes is None:
        return sizes, number
    return _spread(ctx, sizes, axes), number


def _spread(ctx: OpContext, sizes: Shape, axes: tuple[int, ...]) -> Shape:
    rank = ctx[0].type.rank
    if len(sizes) != 2 * len(axes):
        raise ctx.malformed(f"its pads {list(sizes)} do not fit {len(axes)} axes")
    pads: list[Dim] = [0] * (2 * rank)
    for position, axis in enumerate(axes):
        normal = ctx.normal(axis, rank)
        pads[normal] = sizes[position]
        pads[rank + normal] = sizes[len(axes) + position]
    return tuple(pads)
