"""Gradients of reductions: what was joined gets its share back."""

from __future__ import annotations

from edgewise.dims import product
from edgewise.ir.graph import Value
from edgewise.ops import (
    Cast,
    Cumprod,
    DimValue,
    Div,
    Equal,
    Exp,
    Mul,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
    Reshape,
    Sign,
    Sub,
    Transpose,
    Where,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import as_float, scalar, spread


@gradient(ReduceSum)
def reduce_sum(at: Adjoint) -> Gradients:
    """The same to all."""
    return (_back(at, at.dy),)


@gradient(ReduceMean)
def reduce_mean(at: Adjoint) -> Gradients:
    """An equal part to each."""
    return (_back(at, Div()(at.dy, count(at.x, at.op.axes))),)


@gradient(ReduceSumSquare)
def reduce_sum_square(at: Adjoint) -> Gradients:
    """``2 x``."""
    return (Mul()(_back(at, Mul()(at.dy, scalar(2.0, at.dy))), at.x),)


@gradient(ReduceL1)
def reduce_l1(at: Adjoint) -> Gradients:
    """The sign of each, 0 at 0."""
    return (Mul()(_back(at, at.dy), Sign()(at.x)),)


@gradient(ReduceL2)
def reduce_l2(at: Adjoint) -> Gradients:
    """``x / y``, and 0 where all are 0, as PyTorch has it."""
    none = Equal()(at.y, scalar(0.0, at.y))
    share = Div()(at.dy, Where()(none, scalar(1.0, at.y), at.y))
    return (Mul()(_back(at, share), at.x),)


@gradient(ReduceLogSum)
def reduce_log_sum(at: Adjoint) -> Gradients:
    """One in the sum to each."""
    return (_back(at, Div()(at.dy, Exp()(at.y))),)


@gradient(ReduceLogSumExp)
def reduce_log_sum_exp(at: Adjoint) -> Gradients:
    """The softmax."""
    return (Mul()(_back(at, at.dy), Exp()(Sub()(at.x, _back(at, at.y)))),)


@gradient(ReduceMax, ReduceMin)
def reduce_extreme(at: Adjoint) -> Gradients:
    """Equal parts to all that are the extreme, as PyTorch's ``amax`` has it."""
    chosen = as_float(Equal()(at.x, _back(at, at.y)), at.x)
    number = ReduceSum(at.op.axes, keepdims=at.op.keepdims)(chosen)
    return (Mul()(_back(at, Div()(at.dy, number)), chosen),)


@gradient(ReduceProd)
def reduce_prod(at: Adjoint) -> Gradients:
    """The product of the others: of those before and of those behind."""
    axes, rank = at.op.axes, at.x.type.rank
    if not axes:
        return (at.dy,)
    # Several axes are multiplied over as one, which is the last.
    order = (*(j for j in range(rank) if j not in axes), *sorted(axes))
    moved = Transpose(order)(at.x)
    kept = moved.type.shape[: rank - len(axes)]
    row = Reshape((*kept, product(at.x.type.shape[axis] for axis in axes)))(moved)
    last = len(kept)
    before = Cumprod(last, exclusive=True)(row)
    behind = Cumprod(last, exclusive=True, reverse=True)(row)
    others = Reshape(moved.type.shape)(Mul()(before, behind))
    back = tuple(sorted(range(rank), key=lambda j: order[j]))
    return (Mul()(_back(at, at.dy), Transpose(back)(others)),)


def count(x: Value, axes: tuple[int, ...]) -> Value:
    """How many elements of ``x`` are joined, as a scalar of its type."""
    number = product(x.type.shape[axis] for axis in axes)
    if isinstance(number, int):
        return scalar(float(number), x)
    return Cast(x.type.dtype.value)(DimValue((number,), scalar=True)())


def _back(at: Adjoint, value: Value) -> Value:
    return spread(value, at.op.axes, at.x, kept=at.op.keepdims)
