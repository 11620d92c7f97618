"""ONNX operators that lay elements out anew, or read their bits anew."""

from __future__ import annotations

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import counted, reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Dim, floordiv, maximum
from edgewise.ir.graph import Value
from edgewise.ops.binary import Sub
from edgewise.ops.bits import BitCast
from edgewise.ops.choose import Where
from edgewise.ops.index import GatherNd
from edgewise.ops.linalg import Det
from edgewise.ops.logic import Less
from edgewise.ops.pad import Pad
from edgewise.ops.shape import Transpose


@onnx_op("BitCast", since=26)
def _bit_cast(ctx: OpContext) -> Value:
    dtype = ctx.element_type(ctx.attribute("to"))
    return ctx.emit(BitCast(dtype.value), ctx[0])


@onnx_op("Det", since=11)
def _det(ctx: OpContext) -> Value:
    return ctx.emit(Det(), ctx[0])


@onnx_op("CenterCropPad", since=18)
def _center_crop_pad(ctx: OpContext) -> Value:
    x, sizes = ctx[0], ctx.sizes(1)
    rank = x.type.rank
    axes = ctx.attribute("axes", tuple(range(rank)))
    if sizes is None or len(sizes) != len(axes):
        raise ctx.malformed(f"gives sizes {sizes} for the axes {list(axes)}")
    pads: list[Dim] = [0] * (2 * rank)
    for axis, size in zip(axes, sizes, strict=True):
        normal = ctx.normal(int(axis), rank)
        missing = size - x.type.shape[normal]
        # Half of what is missing or too much, rounded down, lies in front.
        front = floordiv(maximum(missing, 0), 2) - floordiv(maximum(-missing, 0), 2)
        pads[normal], pads[rank + normal] = front, missing - front
    return ctx.emit(Pad(tuple(pads)), x)


@onnx_op("ReverseSequence", since=10)
def _reverse_sequence(ctx: OpContext) -> Value:
    x, lengths = ctx[0], ctx[1]
    batch, time = ctx.attribute("batch_axis", 1), ctx.attribute("time_axis", 0)
    if {batch, time} != {0, 1} or x.type.rank < 2:
        raise ctx.malformed(f"batch_axis={batch}, time_axis={time} of {x.type}")
    swap = (1, 0, *range(2, x.type.rank))
    if time == 0:
        x = ctx.emit(Transpose(swap), x)
    n, count = x.type.shape[:2]
    ends = reshaped(ctx, lengths, n, 1)
    places = counted(ctx, 0, count)
    # From its end on, every sequence stays as it is.
    mirrored = ctx.emit(Sub(), ends, counted(ctx, 1, count))
    turned = ctx.emit(Where(), ctx.emit(Less(), places, ends), mirrored, places)
    y = ctx.emit(GatherNd(1), x, reshaped(ctx, turned, n, count, 1))
    return ctx.emit(Transpose(swap), y) if time == 0 else y
