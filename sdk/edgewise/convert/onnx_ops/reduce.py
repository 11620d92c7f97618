"""ONNX reductions."""

from __future__ import annotations

import functools

from edgewise.convert.context import OpContext
from edgewise.convert.onnx_ops import run_axes
from edgewise.convert.onnx_ops.pieces import as_type
from edgewise.convert.onnx_ops.registry import onnx_op
from edgewise.ir.graph import Value
from edgewise.ir.op import OPS, Op
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
    x, keepdims = ctx[0], bool(ctx.attribute("keepdims", 1))
    nothing = bool(ctx.attribute("noop_with_empty_axes", 0))
    given = ctx.optional(1) if ctx.opset >= since else None
    none = given is not None and given.type.elements == 0
    if given is not None and not none and ctx.known(1) is None:
        return run_axes.reduced(
            ctx,
            given,
            lambda moved, axes: _emitted(ctx, OPS[core](axes, False), moved),
            keepdims=keepdims,
        )
    axes = None if none else ctx.axes(x.type.rank, 1, since)
    if not axes:
        axes = () if nothing else tuple(range(x.type.rank))
    return _emitted(ctx, OPS[core](axes, keepdims), x)


def _emitted(ctx: OpContext, op: Op, x: Value) -> Value:
    """The reduction; truth values are counted as numbers."""
    small = as_type(ctx, x, DType.U8) if x.type.dtype is DType.BOOL else x
    return as_type(ctx, ctx.emit(op, small), x.type.dtype)


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
    ctx.pin(1, 1)
    x, axis = ctx[0], ctx[1]
    if axis.type.elements != 1:
        raise ctx.malformed(f"its axis is {axis.type}; want one number")
    ends = bool(ctx.attribute("exclusive", 0)), bool(ctx.attribute("reverse", 0))
    op = Cumsum if ctx.node.op_type == "CumSum" else Cumprod
    if ctx.known(1) is None:
        return run_axes.along(
            ctx,
            axis,
            lambda moved, place: ctx.emit(op(place, *ends), moved),
            sizes=x.type.shape,
        )
    (number,) = ctx.integers(1) or ()
    return ctx.emit(op(ctx.normal(number, x.type.rank), *ends), x)


@onnx_op("TopK")
def _top_k(ctx: OpContext) -> tuple[Value, ...]:
    ctx.ignore("sorted")  # any order will do where it is 0
    if ctx.opset < 10:
        count = ctx.attribute("k")
    else:
        ctx.pin(1, 1)
        given = ctx.sizes(1)
        count = given[0] if given and len(given) == 1 else None
    if count is None:
        raise ctx.malformed("k is not one number")
    axis = ctx.axis(ctx[0].type.rank, -1)
    largest = bool(ctx.attribute("largest", 1))
    return ctx.emit_all(TopK(count, axis, largest), ctx[0])
