"""Batch norms in training, with the activation behind them, and their gradient.

What a composition of statistics, scale and shift does in five passes over memory these
do in two.  Channels are the last axis.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, same_dtype, want, want_shape, wide
from edgewise.ops.derivatives import derivative
from edgewise.ops.epilogue import NAMES, activate, code, parameters
from edgewise.types import TensorType


class BatchNormTrain(Op, name="batch_norm_train"):
    """``activation((x - mean) / sqrt(var + eps) * gamma + shift + residual)``.

    Mean and variance are those of the batch, rounded to the type of ``x``; they are
    the other outputs.  The variance is divided by the count.
    """

    eps: float = 1e-5
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def infer(
        self,
        x: TensorType,
        gamma: TensorType,
        shift: TensorType,
        residual: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        same_dtype(self, x, gamma, shift, residual)
        want(self, (x,), FLOATS)
        if not x.rank:
            raise self.refuse((x,), "channels")
        channels = x.shape[-1]
        want_shape(self, "gamma", gamma, channels)
        want_shape(self, "shift", shift, channels)
        want_shape(self, "residual", residual, *x.shape)
        code(self.activation)
        vector = x.with_shape((channels,))
        return x, vector, vector

    def reference(
        self, x: Array, gamma: Array, shift: Array, residual: Array | None = None
    ) -> tuple[Array, ...]:
        mean, var = moments(x)
        with np.errstate(all="ignore"):
            scale = wide(gamma) / np.sqrt(wide(var) + self.eps)
            y = (wide(x) - wide(mean)) * scale + wide(shift)
            if residual is not None:
                y = y + wide(residual)
            y = activate(self.activation, y, self.alpha, self.beta)
            return y.astype(x.dtype), mean, var

    @staticmethod
    def samples() -> Iterator[Sample]:
        for x in _images():
            vectors = cases.positive(x.shape[-1]), cases.floats(x.shape[-1], seed=1)
            yield Sample(BatchNormTrain(), (x, *vectors))
            residual = cases.floats(*x.shape, seed=2)
            yield Sample(BatchNormTrain(1e-3, "relu"), (x, *vectors, residual))
        for name in NAMES:
            op = BatchNormTrain(1e-5, name, *parameters(name))
            yield Sample(op, (x, *vectors))
            yield Sample(op, (x.astype("f8"), *(v.astype("f8") for v in vectors)))


class BatchNormTrainGrad(Op, name="batch_norm_train_grad"):
    """Gradients of x, gamma and shift of a ``batch_norm_train`` without a residual.

    What its activation was given is computed anew: nothing but ``x`` need be kept.
    """

    in_place = (0,)
    eps: float = 1e-5
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def infer(
        self,
        dy: TensorType,
        x: TensorType,
        gamma: TensorType,
        shift: TensorType,
        mean: TensorType,
        var: TensorType,
    ) -> tuple[TensorType, ...]:
        vectors = (gamma, shift, mean, var)
        same_dtype(self, dy, x, *vectors)
        want(self, (x,), FLOATS)
        if not x.rank:
            raise self.refuse((dy, x), "channels")
        want_shape(self, "dy", dy, *x.shape)
        for name, given in zip(("gamma", "shift", "mean", "var"), vectors, strict=True):
            want_shape(self, name, given, x.shape[-1])
        code(self.activation)
        return x, gamma, gamma

    def reference(self, dy: Array, x: Array, *vectors: Array) -> tuple[Array, ...]:
        gamma, shift, mean, var = map(wide, vectors)
        axes = tuple(range(x.ndim - 1))
        count = max(x.size // max(x.shape[-1], 1), 1)
        with np.errstate(all="ignore"):
            inverse = 1 / np.sqrt(var + self.eps)
            centred, scale = wide(x) - mean, gamma * inverse
            given = centred * scale + shift
            slope = derivative(self.activation, given, self.alpha, self.beta)
            grad = wide(dy) * slope
            total, weighted = grad.sum(axis=axes), (grad * centred).sum(axis=axes)
            along = centred * (weighted * inverse * inverse / count)
            dx = scale * (grad - total / count - along)
            found = dx, weighted * inverse, total
            return tuple(np.asarray(each, x.dtype) for each in found)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in BatchNormTrain.samples():
            x, gamma, shift, *more = sample.inputs
            if more or x is None:
                continue
            dy = cases.floats(*x.shape, seed=3).astype(x.dtype)
            op = BatchNormTrainGrad(*sample.op.values)
            yield Sample(op, (dy, x, gamma, shift, *moments(x)))


def moments(x: Array) -> tuple[Array, Array]:
    """Mean and variance of each channel, rounded; NaN where there are no rows."""
    axes = tuple(range(x.ndim - 1))
    if not x.size:
        nothing = np.full(x.shape[-1], np.nan, x.dtype)
        return nothing, nothing
    with np.errstate(all="ignore"):
        mean = wide(x).mean(axis=axes)
        var = np.square(wide(x) - mean).mean(axis=axes)
        return mean.astype(x.dtype), var.astype(x.dtype)


def _images() -> Iterator[Array]:
    """Tails, blocks of rows, one row, none, numbers far from 0."""
    for shape in ((1, 3), (7, 1), (0, 3), (2, 3, 5, 17), (1100, 33)):
        yield cases.floats(*shape)
    yield cases.floats(64, 17) + np.float32(3000)
    yield cases.floats(2, 5, 7)
