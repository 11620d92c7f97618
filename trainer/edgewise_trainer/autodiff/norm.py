"""Gradients of normalisations, in terms of what was normalised."""

from __future__ import annotations

from edgewise.ir.graph import Value
from edgewise.ops import (
    Add,
    BatchNorm,
    BatchNormFold,
    LayerNorm,
    Mul,
    Neg,
    Reciprocal,
    ReduceMean,
    ReduceSum,
    Reshape,
    RmsNorm,
    ScaleShift,
    Sqrt,
    Sub,
)
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar, sum_to

Axes = tuple[int, ...]


@gradient(LayerNorm)
def layer_norm(at: Adjoint) -> Gradients:
    """``(g - mean(g) - n * mean(g * n)) / deviation`` with ``n`` normalised."""
    axes = tuple(range(at.op.axis, at.x.type.rank))
    scale, shift = (*at.inputs[1:], None, None)[:2]
    normal, inverse = normalised(at.x, axes, at.op.eps)
    grad = at.dy if scale is None else Mul()(at.dy, scale)
    found: list[Value | None] = [through(grad, normal, inverse, axes)]
    if scale is not None:
        found.append(sum_to(Mul()(at.dy, normal), scale))
    elif len(at.inputs) > 1:
        found.append(None)
    if shift is not None:
        found.append(sum_to(at.dy, shift))
    elif len(at.inputs) > 2:
        found.append(None)
    return tuple(found)


@gradient(RmsNorm)
def rms_norm(at: Adjoint) -> Gradients:
    """``(g - n * mean(g * n)) / root`` with ``n`` normalised."""
    axes = tuple(range(at.op.axis, at.x.type.rank))
    scale = at.input(1)
    inverse = _inverse_root(ReduceMean(axes)(Mul()(at.x, at.x)), at.op.eps)
    normal = Mul()(at.x, inverse)
    grad = Mul()(at.dy, scale)
    along = Mul()(normal, ReduceMean(axes)(Mul()(grad, normal)))
    back = Mul()(Sub()(grad, along), inverse)
    return back, sum_to(Mul()(at.dy, normal), scale)


@gradient(BatchNorm)
def batch_norm(at: Adjoint) -> Gradients:
    """With running statistics: a scale and a shift of each channel."""
    gamma, _, mean, var = (at.input(j) for j in range(1, 5))
    rank, axis = at.x.type.rank, at.op.axis
    inverse = _inverse_root(var, at.op.eps)
    factor = along(Mul()(gamma, inverse), axis, rank)
    centred = Sub()(at.x, along(mean, axis, rank))
    summed = _channels(at.dy, axis)
    weighted = _channels(Mul()(at.dy, centred), axis)
    cubed = Mul()(inverse, Mul()(inverse, inverse))
    spread = Mul()(Mul()(weighted, gamma), Mul()(cubed, scalar(-0.5, cubed)))
    return (
        Mul()(at.dy, factor),
        Mul()(weighted, inverse),
        summed,
        Neg()(Mul()(summed, Mul()(gamma, inverse))),
        spread,
    )


@gradient(BatchNormFold)
def batch_norm_fold(at: Adjoint) -> Gradients:
    """As the formula says: scale is ``gamma / root``, shift follows from it."""
    gamma, _, mean, var = (at.input(j) for j in range(4))
    bias = at.inputs[4] if len(at.inputs) > 4 else None
    offset = Neg()(mean) if bias is None else Sub()(bias, mean)
    dscale, dshift = at.grads
    if dshift is not None:
        part = Mul()(dshift, offset)
        dscale = part if dscale is None else Add()(dscale, part)
    if dscale is None:
        raise at.refuse("nothing depends on it")
    inverse = _inverse_root(var, at.op.eps)
    scale = Mul()(gamma, inverse)
    dvar = Mul()(Mul()(dscale, scale), Mul()(inverse, inverse))
    moved = None if dshift is None else Mul()(dshift, scale)
    found = (
        Mul()(dscale, inverse),
        dshift,
        None if moved is None else Neg()(moved),
        Mul()(dvar, scalar(-0.5, dvar)),
        None if bias is None else moved,
    )
    return found[: len(at.inputs)]


@gradient(ScaleShift)
def scale_shift(at: Adjoint) -> Gradients:
    """The scale; to the scale x, to the shift 1, summed over all other axes."""
    scale, axis, rank = at.inputs[1], at.op.axis, at.x.type.rank
    back = at.dy if scale is None else Mul()(at.dy, along(scale, axis, rank))
    factor = None if scale is None else _channels(Mul()(at.dy, at.x), axis)
    has_shift = len(at.inputs) > 2 and at.inputs[2] is not None
    term = _channels(at.dy, axis) if has_shift else None
    return (back, factor, term)[: len(at.inputs)]


def normalised(x: Value, axes: Axes, eps: float) -> tuple[Value, Value]:
    """Mean 0 and variance 1 over axes, and one in the deviation."""
    centred = Sub()(x, ReduceMean(axes)(x))
    inverse = _inverse_root(ReduceMean(axes)(Mul()(centred, centred)), eps)
    return Mul()(centred, inverse), inverse


def through(grad: Value, normal: Value, inverse: Value, axes: Axes) -> Value:
    """A gradient back through ``normalised``."""
    mean = ReduceMean(axes)(grad)
    along_ = Mul()(normal, ReduceMean(axes)(Mul()(grad, normal)))
    return Mul()(Sub()(Sub()(grad, mean), along_), inverse)


def along(vector: Value, axis: int, rank: int) -> Value:
    """One number for each element of an axis, to be broadcast over the others."""
    shape = tuple(vector.type.shape[0] if j == axis else 1 for j in range(rank))
    return Reshape(shape)(vector)


def _channels(value: Value, axis: int) -> Value:
    axes = tuple(j for j in range(value.type.rank) if j != axis)
    return ReduceSum(axes, keepdims=False)(value)


def _inverse_root(variance: Value, eps: float) -> Value:
    return Reciprocal()(Sqrt()(Add()(variance, scalar(eps, variance))))
