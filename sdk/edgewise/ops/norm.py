"""Normalisations: mean and variance over axes, given statistics, sums of squares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    FLOATS,
    same_dtype,
    want,
    want_axis,
    want_broadcast,
    want_shape,
    wide,
)
from edgewise.ops.formulas import normalised, scaled
from edgewise.ops.image_norm import GroupNorm, InstanceNorm, Lrn
from edgewise.types import TensorType

__all__ = [
    "BatchNorm",
    "BatchNormFold",
    "GroupNorm",
    "InstanceNorm",
    "LayerNorm",
    "Lrn",
    "RmsNorm",
    "ScaleShift",
]

FAR = 3000.0  # in float32 the squares of such values lose the variance


def _along(x: Array, axis: int, rank: int) -> Array:
    """A vector in the shape that broadcasts along ``axis``."""
    shape = [1] * rank
    shape[axis] = len(x)
    return wide(x).reshape(shape)


class LayerNorm(Op, name="layer_norm"):
    """Mean 0 and variance 1 over the axes from ``axis`` on, then scale and shift."""

    axis: int
    eps: float = 1e-5

    def infer(
        self,
        x: TensorType,
        scale: TensorType | None = None,
        shift: TensorType | None = None,
    ) -> TensorType:
        same_dtype(self, x, scale, shift)
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        want_broadcast(self, "scale", scale, x.shape)
        want_broadcast(self, "shift", shift, x.shape)
        return x

    def reference(
        self, x: Array, scale: Array | None = None, shift: Array | None = None
    ) -> Array:
        with np.errstate(all="ignore"):
            y = normalised(x, tuple(range(self.axis, x.ndim)), self.eps)
            return scaled(y, scale, shift).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis in (((7,), 0), ((3, 17), 1), ((2, 3, 33), 2), ((2, 3, 5), 1)):
            x, tail = cases.floats(*shape), shape[axis:]
            inputs = (x, cases.positive(*tail), cases.floats(*tail, seed=1))
            yield Sample(LayerNorm(axis), inputs)
            yield Sample(LayerNorm(axis, 1e-12), (x, inputs[1], None))
            yield Sample(LayerNorm(axis), (x, None, None))
        row, one = cases.floats(4, 16), cases.positive(16)
        yield Sample(LayerNorm(1), (row + np.float32(FAR), one, None))
        yield Sample(LayerNorm(1), (np.full((2, 16), 5, "f4"), one, one))
        yield Sample(LayerNorm(1), (cases.floats(0, 16), one, one))
        row[1, 3] = np.nan
        yield Sample(LayerNorm(1), (row, one, one))
        double = cases.floats(3, 7, dtype="float64")
        yield Sample(LayerNorm(1), (double, double[0].copy(), double[1].copy()))


class RmsNorm(Op, name="rms_norm"):
    """``x`` by the root of its mean square over the axes from ``axis`` on, scaled."""

    axis: int
    eps: float = 1e-5

    def infer(self, x: TensorType, scale: TensorType) -> TensorType:
        same_dtype(self, x, scale)
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        want_broadcast(self, "scale", scale, x.shape)
        return x

    def reference(self, x: Array, scale: Array) -> Array:
        axes = tuple(range(self.axis, x.ndim))
        with np.errstate(all="ignore"):
            square = np.square(wide(x)).mean(axis=axes, keepdims=True)
            return np.asarray(wide(x) / np.sqrt(square + self.eps) * scale, x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis in (((7,), 0), ((3, 17), 1), ((2, 3, 33), 2), ((2, 3, 5), 1)):
            inputs = (cases.floats(*shape), cases.positive(*shape[axis:]))
            yield Sample(RmsNorm(axis), inputs)
        yield Sample(RmsNorm(1), (np.zeros((2, 5), "f4"), cases.positive(5)))
        yield Sample(RmsNorm(1), (cases.floats(2, 5) * 1e19, cases.positive(5)))


class BatchNorm(Op, name="batch_norm"):
    """``(x - mean) / sqrt(var + eps) * gamma + beta``, per element of ``axis``."""

    axis: int
    eps: float = 1e-5

    def infer(
        self,
        x: TensorType,
        gamma: TensorType,
        beta: TensorType,
        mean: TensorType,
        var: TensorType,
    ) -> TensorType:
        same_dtype(self, x, gamma, beta, mean, var)
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        names = ("gamma", "beta", "mean", "var")
        for name, given in zip(names, (gamma, beta, mean, var), strict=True):
            want_shape(self, name, given, x.shape[self.axis])
        return x

    def reference(self, x: Array, *statistics: Array) -> Array:
        gamma, beta, mean, var = (_along(v, self.axis, x.ndim) for v in statistics)
        with np.errstate(all="ignore"):
            y = (wide(x) - mean) / np.sqrt(var + self.eps) * gamma + beta
            return y.astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis in (((7,), 0), ((3, 17), 1), ((2, 3, 4, 5), 1), ((0, 5), 1)):
            inputs = (cases.floats(*shape), *_statistics(shape[axis]))
            yield Sample(BatchNorm(axis), inputs)
        inputs = (cases.special().reshape(3, -1), *_statistics(7))
        yield Sample(BatchNorm(1, 1e-3), inputs)


def _statistics(size: int) -> tuple[Array, ...]:
    mean, beta = cases.floats(size, seed=1), cases.floats(size, seed=2)
    return cases.positive(size), beta, mean, cases.positive(size, seed=3)


class BatchNormFold(Op, name="batch_norm_fold"):
    """A batch norm after a bias as one scale and one shift."""

    eps: float = 1e-5

    def infer(
        self,
        gamma: TensorType,
        beta: TensorType,
        mean: TensorType,
        var: TensorType,
        bias: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        given = (gamma, beta, mean, var, bias)
        same_dtype(self, *given)
        want(self, (gamma,), FLOATS)
        if gamma.rank != 1:
            raise self.refuse(given, "vectors")
        for type_ in given[1:]:
            want_shape(self, "statistic", type_, *gamma.shape)
        return gamma, gamma

    def reference(
        self,
        gamma: Array,
        beta: Array,
        mean: Array,
        var: Array,
        bias: Array | None = None,
    ) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            scale = wide(gamma) / np.sqrt(wide(var) + self.eps)
            offset = -wide(mean) if bias is None else wide(bias) - wide(mean)
            shift = wide(beta) + offset * scale
            return scale.astype(gamma.dtype), shift.astype(gamma.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for size in (1, 17, 0):
            yield Sample(BatchNormFold(), (*_statistics(size), None))
            bias = cases.floats(size, seed=4)
            yield Sample(BatchNormFold(1e-3), (*_statistics(size), bias))


class ScaleShift(Op, name="scale_shift"):
    """``x * scale + shift``, per element of ``axis``."""

    in_place = (0,)
    axis: int

    def infer(
        self,
        x: TensorType,
        scale: TensorType | None = None,
        shift: TensorType | None = None,
    ) -> TensorType:
        same_dtype(self, x, scale, shift)
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        want_shape(self, "scale", scale, x.shape[self.axis])
        want_shape(self, "shift", shift, x.shape[self.axis])
        return x

    def reference(
        self, x: Array, scale: Array | None = None, shift: Array | None = None
    ) -> Array:
        vectors = (
            None if v is None else _along(v, self.axis, x.ndim) for v in (scale, shift)
        )
        with np.errstate(all="ignore"):
            return scaled(wide(x), *vectors).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, axis in (((7,), 0), ((3, 17), 1), ((2, 3, 4, 5), 1), ((0, 5), 1)):
            x, size = cases.floats(*shape), shape[axis]
            scale, shift = cases.positive(size), cases.floats(size, seed=1)
            yield Sample(ScaleShift(axis), (x, scale, shift))
            yield Sample(ScaleShift(axis), (x, scale, None))
            yield Sample(ScaleShift(axis), (x, None, shift))
        x = cases.special().reshape(3, 7)
        yield Sample(ScaleShift(1), (x, cases.positive(7), cases.floats(7)))
