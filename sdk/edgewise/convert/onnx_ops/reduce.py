"""ONNX reductions."""

from __future__ import annotations

import functools

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ir.op import OPS
from edgewise.ops.choose import Cast
from edgewise.ops.order import Argmax, Argmin, Cumprod, Cumsum, TopK
from edgewise.types import DType

# The operator set in which axes became an input.
_AXES_INPUT = {
    "ReduceL1": ("reduce_l1", 18),
    "ReduceL2": ("reduce_l2", 18),
    "ReduceLogSum": ("reduce_log_sum", 18),
    "ReduceLogSumExp": ("reduce_log_sum_exp", 18),
    "ReduceMax": ("reduce_max", 18),
    "ReduceMean": ("reduce_mean", 18),
    "ReduceMin": ("reduce_min", 18),
    "ReduceProd": ("reduce_prod", 18),
    "ReduceSum": ("reduce_sum", 13),
    "ReduceSumSquare": ("reduce_sum_square", 18),
}


def _reduce(core: str, since: int, ctx: OpContext) -> Value:
    x = ctx[0]
    axes = ctx.axes(x.type.rank, 1, since)
    keepdims = bool(ctx.attribute("keepdims", 1))
    if not axes:
        if ctx.attribute("noop_with_empty_axes", 0):
            axes = ()
        else:
            axes = tuple(range(x.type.rank))
    else:
        ctx.ignore("noop_with_empty_axes")
    op = OPS[core](axes, keepdims)
    if x.type.dtype is DType.BOOL:
        small = ctx.emit(op, ctx.emit(Cast(DType.U8.value), x))
        return ctx.emit(Cast(DType.BOOL.value), small)
    return ctx.emit(op, x)


for _name, (_core, _since) in _AXES_INPUT.items():
    onnx_op(_name)(functools.partial(_reduce, _core, _since))


@onnx_op("ArgMax", "ArgMin")
def _arg(ctx: OpContext) -> Value:
    op = Argmax if ctx.node.op_type == "ArgMax" else Argmin
    axis, keepdims = ctx.axis(ctx[0].type.rank, 0), bool(ctx.attribute("keepdims", 1))
    last = bool(ctx.attribute("select_last_index", 0))
    return ctx.emit(op(axis, keepdims, last), ctx[0])


@onnx_op("CumSum", since=11)
@onnx_op("CumProd", since=26)
def _running(ctx: OpContext) -> Value:
    axis = ctx.integers(1)
    if axis is None or len(axis) != 1:
        raise ctx.malformed("its axis is not one number")
    exclusive = bool(ctx.attribute("exclusive", 0))
    reverse = bool(ctx.attribute("reverse", 0))
    op = Cumsum if ctx.node.op_type == "CumSum" else Cumprod
    return ctx.emit(
        op(ctx.normal(axis[0], ctx[0].type.rank), exclusive, reverse), ctx[0]
    )


@onnx_op("TopK")
def _top_k(ctx: OpContext) -> tuple[Value, ...]:
    ctx.ignore("sorted")  # any order will do where it is 0
    if ctx.opset < 10:
        count = ctx.attribute("k")
    else:
        given = ctx.integers(1)
        count = given[0] if given and len(given) == 1 else None
    if count is None:
        raise ctx.malformed("k is not one number")
    axis = ctx.axis(ctx[0].type.rank, -1)
    largest = bool(ctx.attribute("largest", 1))
    return ctx.emit_all(TopK(int(count), axis, largest), ctx[0])
