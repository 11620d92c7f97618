"""ONNX operators that pick elements by index, and those that make tensors of sizes."""

from __future__ import annotations

import numpy as np

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.pieces import counted, reshaped
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.dims import Dim
from edgewise.ir.graph import Value
from edgewise.ops.binary import Sub
from edgewise.ops.choose import Cast, Where
from edgewise.ops.create import Fill
from edgewise.ops.index import Gather, GatherElements, GatherNd, OneHot, Triangle
from edgewise.ops.logic import GreaterEqual, LessEqual
from edgewise.ops.scatter import ScatterElements, ScatterNd
from edgewise.types import DType


@onnx_op("Constant")
def _constant(ctx: OpContext) -> Value:
    for name in ("value", "sparse_value"):
        array = ctx.tensor(name)
        if array is not None:
            return ctx.constant(array)
    for name, dtype in _PLAIN.items():
        given = ctx.attribute(name)
        if given is not None:
            return ctx.constant(np.array(given, dtype))
    raise ctx.malformed("its value is missing")


_PLAIN: dict[str, type] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


@onnx_op("ConstantOfShape", since=9)
def _constant_of_shape(ctx: OpContext) -> Value:
    shape = ctx.sizes(0)
    if shape is None:
        raise ctx.malformed("its shape is missing")
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise ctx.malformed(f"its shape {list(shape)} has a negative size")
    given = ctx.tensor("value")
    array = np.zeros(1, np.float32) if given is None else given
    if array.size != 1:
        raise ctx.malformed(f"its value has {array.size} elements; want 1")
    return ctx.emit(Fill(shape), ctx.constant(array.reshape(())))


def _one(ctx: OpContext, index: int) -> Dim:
    ctx.pin(index, 1)
    sizes = ctx.sizes(index)
    if sizes is None or len(sizes) != 1:
        raise ctx.malformed(f"its input {index} is not one number")
    return sizes[0]


@onnx_op("EyeLike", since=9)
def _eye_like(ctx: OpContext) -> Value:
    if ctx[0].type.rank != 2:
        raise ctx.malformed(f"its input is {ctx[0].type}; want a matrix")
    code = ctx.attribute("dtype")
    rows, columns = (ctx.whole(size) for size in ctx[0].type.shape)
    dtype = ctx[0].type.dtype if code is None else ctx.element_type(code)
    offset = int(ctx.attribute("k", 0))
    return ctx.constant(np.eye(rows, columns, offset).astype(dtype.numpy))


@onnx_op("Gather")
def _gather(ctx: OpContext) -> Value:
    return ctx.emit(Gather(ctx.axis(ctx[0].type.rank, 0)), ctx[0], ctx[1])


@onnx_op("GatherElements", since=11)
def _gather_elements(ctx: OpContext) -> Value:
    return ctx.emit(GatherElements(ctx.axis(ctx[0].type.rank, 0)), ctx[0], ctx[1])


@onnx_op("GatherND", since=11)
def _gather_nd(ctx: OpContext) -> Value:
    _want_tuples(ctx)
    return ctx.emit(GatherNd(int(ctx.attribute("batch_dims", 0))), ctx[0], ctx[1])


@onnx_op("ScatterElements", "Scatter")
def _scatter_elements(ctx: OpContext) -> Value:
    axis = ctx.axis(ctx[0].type.rank, 0)
    op = ScatterElements(axis, ctx.attribute("reduction", "none"))
    return ctx.emit(op, ctx[0], ctx[1], ctx[2])


@onnx_op("ScatterND", since=11)
def _scatter_nd(ctx: OpContext) -> Value:
    _want_tuples(ctx)
    op = ScatterNd(ctx.attribute("reduction", "none"))
    return ctx.emit(op, ctx[0], ctx[1], ctx[2])


def _want_tuples(ctx: OpContext) -> None:
    """Raise where only a run knows how many numbers an index is made of."""
    shape = ctx[1].type.shape
    if shape and not isinstance(shape[-1], int):
        raise ctx.unsupported(
            f"its indices are {ctx[1].type}: only a run knows how many axes they pick"
            " from",
            "give their last axis a fixed size before export",
        )


@onnx_op("OneHot", since=9)
def _one_hot(ctx: OpContext) -> Value:
    indices, values = ctx[0], ctx[2]
    if not indices.type.dtype.is_integer:
        indices = ctx.emit(Cast(DType.I64.value), indices)
    depth = _one(ctx, 1)
    axis = ctx.axis(indices.type.rank + 1, -1)
    return ctx.emit(OneHot(depth, axis), indices, values)


@onnx_op("Trilu", since=14)
def _trilu(ctx: OpContext) -> Value:
    ctx.pin(1, 1)
    x, upper, k = ctx[0], bool(ctx.attribute("upper", 1)), ctx.optional(1)
    if k is not None and k.type.elements != 1:
        raise ctx.malformed(f"k is {k.type}; want one number")
    if x.type.rank < 2:
        raise ctx.malformed(f"it reads {x.type}; want matrices")
    if k is None:
        return ctx.emit(Triangle(upper, 0), x)
    if ctx.known(1) is not None:
        (number,) = ctx.integers(1) or ()
        return ctx.emit(Triangle(upper, number), x)
    rows, columns = x.type.shape[-2:]
    below = reshaped(ctx, counted(ctx, 0, rows), rows, 1)
    diagonal = ctx.emit(Sub(), counted(ctx, 0, columns), below)
    kept = ctx.emit(
        GreaterEqual() if upper else LessEqual(), diagonal, reshaped(ctx, k)
    )
    return ctx.emit(Where(), kept, x, ctx.like(0, x))
