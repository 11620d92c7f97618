"""The gradient of Fourier transforms: they are linear, and so are their adjoints."""

from __future__ import annotations

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.graph import Value, constant
from edgewise.ops import Dft, Mul, Pad, Slice
from edgewise_trainer.autodiff.rule import Adjoint, Gradients, gradient
from edgewise_trainer.autodiff.shapes import scalar


@gradient(Dft)
def dft(at: Adjoint) -> Gradients:
    """The transform the other way round, without or with its division."""
    op, length = at.op, at.op.length
    if not isinstance(length, int):
        raise at.refuse("only a run knows its length")
    if op.inverse and op.onesided:
        spectrum = _halved(at, length)
    elif op.inverse:
        spectrum = _times(Dft(length, op.axis)(at.dy), 1 / length)
    else:
        whole = _sized(at.dy, op.axis, length)
        spectrum = _times(Dft(length, op.axis, inverse=True)(whole), length)
    given = at.x.type.shape
    spectrum = _sized(spectrum, op.axis, given[op.axis])
    if given[-1] == 2:
        return (spectrum,)
    rank = len(given)
    return (Slice((0,) * rank, given, (1,) * rank)(spectrum),)


def _halved(at: Adjoint, length: int) -> Value:
    """Of half a spectrum: but for the first and the middle each stands for two."""
    axis, count = at.op.axis, length // 2 + 1
    factors = np.full(count, 2.0 / length)
    factors[0] = 1 / length
    if length % 2 == 0:
        factors[-1] = 1 / length
    shape = [1] * at.x.type.rank
    shape[axis] = count
    along = constant(factors.reshape(shape).astype(at.x.type.dtype.numpy))
    return Mul()(Dft(length, axis, onesided=True)(at.dy), along)


def _times(value: Value, factor: float) -> Value:
    return Mul()(value, scalar(factor, value))


def _sized(value: Value, axis: int, size: Dim) -> Value:
    """With zeros behind an axis, or with its end cut off."""
    have = value.type.shape[axis]
    if have == size:
        return value
    pads: list[Dim] = [0] * (2 * value.type.rank)
    pads[value.type.rank + axis] = size - have
    return Pad(tuple(pads))(value)
