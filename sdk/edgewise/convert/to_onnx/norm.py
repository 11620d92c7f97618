"""Normalisations."""

from __future__ import annotations

import numpy as np

from edgewise.convert.to_onnx.elementwise import second
from edgewise.convert.to_onnx.products import folded, normalised
from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.dims import floordiv, product
from edgewise.ir.graph import Value
from edgewise.ops.image_norm import GroupNorm, InstanceNorm, Lrn
from edgewise.ops.norm import BatchNorm, BatchNormFold, LayerNorm, RmsNorm, ScaleShift


@writes(BatchNormFold)
def batch_norm_fold(at: At) -> Written:
    """As a scale and a shift; of use only where they are no batch norm any more."""
    gamma, beta, mean, var = (at.name(index) for index in range(4))
    bias, eps = at.name(4), at.number(at.op.eps, at.x)
    deviation = at.emit("Sqrt", at.emit("Add", var, eps))
    scale = at.emit("Div", gamma, deviation)
    offset = at.emit("Sub", bias, mean) if bias else at.emit("Neg", mean)
    return scale, at.emit("Add", beta, at.emit("Mul", offset, scale))


@writes(ScaleShift)
def scale_shift(at: At) -> Written:
    """A BatchNormalization where it is one, else a product and a sum."""
    rank, axis = at.x.type.rank, at.op.axis
    scale, shift = at.given(1), at.given(2)
    fold = folded(scale, shift)
    if fold is not None and (len(fold.inputs) < 5 or fold.inputs[4] is None):
        if rank > 1 and axis == 1:
            return normalised(at, at.name(0), fold)
        if rank > 2 and axis == rank - 1:
            return Image(normalised(at, at.image(0), fold))
    if at.writer.is_image(at.x) and axis == rank - 1:
        found = at.image(0)
        found = found if scale is None else _times(at, found, second(at, scale, rank))
        if shift is not None:
            found = at.emit("Add", found, second(at, shift, rank))
        return Image(found)
    found = at.name(0)
    if scale is not None:
        found = _times(at, found, _along(at, scale, axis, rank))
    if shift is not None:
        found = at.emit("Add", found, _along(at, shift, axis, rank))
    return found


def _times(at: At, a: str, b: str) -> str:
    return at.emit("Mul", a, b)


def _along(at: At, vector: Value, axis: int, rank: int) -> str:
    """A vector that broadcasts along an axis."""
    name = at.writer.name(vector)
    axes = [j for j in range(rank) if j != axis]
    return at.emit("Unsqueeze", name, at.integers(*axes)) if axes else name


@writes(BatchNorm)
def batch_norm(at: At) -> Written:
    """By running statistics."""
    rank, axis, eps = at.x.type.rank, at.op.axis, at.op.eps
    names = [at.name(index) for index in range(1, 5)]
    if rank > 1 and axis == 1:
        return at.emit("BatchNormalization", at.name(0), *names, epsilon=eps)
    if rank > 2 and axis == rank - 1:
        image = at.emit("BatchNormalization", at.image(0), *names, epsilon=eps)
        return Image(image)
    gamma, beta, mean, var = (
        _along(at, at.value(index), axis, rank) for index in range(1, 5)
    )
    deviation = at.emit("Sqrt", at.emit("Add", var, at.number(eps, at.x)))
    normal = at.emit("Div", at.emit("Sub", at.name(0), mean), deviation)
    return at.emit("Add", at.emit("Mul", normal, gamma), beta)


@writes(LayerNorm)
def layer_norm(at: At) -> Written:
    """The operator where it is scaled by as many elements as it wants."""
    axis, tail = at.op.axis, at.x.type.shape[at.op.axis :]
    scale, shift = at.given(1), at.given(2)
    plain = all(v is None or v.type.shape == tail for v in (scale, shift))
    if scale is not None and plain:
        names = (at.name(0), at.name(1), at.name(2))
        return at.emit("LayerNormalization", *names, axis=axis, epsilon=at.op.eps)
    axes = at.integers(*range(axis, at.x.type.rank))
    mean = at.emit("ReduceMean", at.name(0), axes, keepdims=1)
    centred = at.emit("Sub", at.name(0), mean)
    normal = at.emit("Div", centred, _root(at, centred, axes))
    if scale is not None:
        normal = _times(at, normal, at.name(1))
    return at.emit("Add", normal, at.name(2)) if shift is not None else normal


def _root(at: At, name: str, axes: str) -> str:
    """The root of the mean square, and of epsilon."""
    squares = _times(at, name, name)
    mean = at.emit("ReduceMean", squares, axes, keepdims=1)
    return at.emit("Sqrt", at.emit("Add", mean, at.number(at.op.eps, at.x)))


@writes(RmsNorm)
def rms_norm(at: At) -> Written:
    """By its root mean square; ONNX names it from operator set 23 on."""
    axes = at.integers(*range(at.op.axis, at.x.type.rank))
    normal = at.emit("Div", at.name(0), _root(at, at.name(0), axes))
    return _times(at, normal, at.name(1))


@writes(InstanceNorm)
def instance_norm(at: At) -> Written:
    """Each channel of each image."""
    names = (at.image(0), at.name(1), at.name(2))
    return Image(at.emit("InstanceNormalization", *names, epsilon=at.op.eps))


@writes(GroupNorm)
def group_norm(at: At) -> Written:
    """Each group of channels of each image, as one channel that is scaled later."""
    shape, groups = at.x.type.shape, at.op.parts or at.x.type.dims[-1]
    dtype, vector = at.x.type.dtype.numpy, at.writer.sizes.vector
    one = at.writer.constant(np.ones(groups, dtype))
    none = at.writer.constant(np.zeros(groups, dtype))
    joined = vector((shape[0], groups, floordiv(product(shape[1:]), groups)))
    rows = at.emit("Reshape", at.image(0), joined, allowzero=1)
    eps = {"epsilon": at.op.eps}
    rows = at.emit("InstanceNormalization", rows, one, none, **eps)
    whole = vector((shape[0], shape[-1], *shape[1:-1]))
    normal = at.emit("Reshape", rows, whole, allowzero=1)
    rank = len(shape)
    scaled = _times(at, normal, second(at, at.value(1), rank))
    return Image(at.emit("Add", scaled, second(at, at.value(2), rank)))


@writes(Lrn)
def lrn(at: At) -> Written:
    """Over neighbouring channels."""
    op = at.op
    more = {"size": op.size, "alpha": op.alpha, "beta": op.beta, "bias": op.bias}
    return Image(at.emit("LRN", at.image(0), **more))
