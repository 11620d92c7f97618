"""Normalisations of images, channels last: per image, and among near channels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    FLOATS,
    may_equal,
    same_dtype,
    want,
    want_axis,
    want_shape,
    wide,
)
from edgewise.ops.formulas import normalised, scaled
from edgewise.types import TensorType

FAR = 3000.0  # in float32 the squares of such values lose the variance


class _PerImage(Op):
    """Statistics over the places of one image, channels last."""

    def infer(self, x: TensorType, scale: TensorType, shift: TensorType) -> TensorType:
        same_dtype(self, x, scale, shift)
        want(self, (x,), FLOATS)
        if self.parts < 0:
            raise self.refuse((x,), "one group of channels or more")
        if x.rank < 3 or not may_equal(_remainder(x.shape[-1], self.parts), 0):
            raise self.refuse((x,), "[N, ..., C], channels in equal groups")
        want_shape(self, "scale", scale, x.shape[-1])
        want_shape(self, "shift", shift, x.shape[-1])
        return x

    @property
    def parts(self) -> int:
        """Groups of channels that share statistics; 0 where none do."""
        return 0

    def reference(self, x: Array, scale: Array, shift: Array) -> Array:
        if not x.size:
            return x.copy()
        count = self.parts or x.shape[-1]
        grouped = x.reshape(len(x), -1, count, x.shape[-1] // max(count, 1))
        eps = float(self.values[-1])  # type: ignore[arg-type]  # the last attribute
        with np.errstate(all="ignore"):
            y = normalised(grouped, (1, 3), eps).reshape(x.shape)
            return scaled(y, scale, shift).astype(x.dtype)


def _remainder(channels: Dim, parts: int) -> Dim:
    return channels % parts if parts else 0


class InstanceNorm(_PerImage, name="instance_norm"):
    """Mean 0 and variance 1 per image and channel, then scale and shift."""

    eps: float = 1e-5

    @staticmethod
    def samples() -> Iterator[Sample]:
        yield from _images(InstanceNorm(), 1)


class GroupNorm(_PerImage, name="group_norm"):
    """Mean 0 and variance 1 per image and group of channels, then scale and shift."""

    groups: int
    eps: float = 1e-5

    @property
    def parts(self) -> int:
        return self.groups or -1

    @staticmethod
    def samples() -> Iterator[Sample]:
        yield from _images(GroupNorm(1), 1)
        yield from _images(GroupNorm(3, 1e-3), 3)


def _images(op: Op, groups: int) -> Iterator[Sample]:
    for shape in ((1, 7, groups), (2, 3, 5, 2 * groups), (2, 4, 17 * groups)):
        scale, shift = cases.positive(shape[-1]), cases.floats(shape[-1])
        yield Sample(op, (cases.floats(*shape), scale, shift))
        yield Sample(op, (cases.floats(*shape) + np.float32(FAR), scale, shift))
    for shape in ((0, 3, groups), (2, 0, groups), (2, 3, 0)):
        yield Sample(op, tuple(cases.floats(*s) for s in (shape, *[shape[-1:]] * 2)))


class Lrn(Op, name="lrn"):
    """``x / (bias + alpha / size * sum of near squares) ** beta``, channels last."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), FLOATS)
        want_axis(self, 1, x.rank)
        if self.size < 1:
            raise self.refuse((x,), f"a size from 1 on, not {self.size}")
        return x

    def reference(self, x: Array) -> Array:
        before, channels = (self.size - 1) // 2, x.shape[-1]
        after = self.size - 1 - before
        squares = np.pad(
            np.square(wide(x)), [(0, 0)] * (x.ndim - 1) + [(before, after)]
        )
        near = sum(squares[..., j : j + channels] for j in range(self.size))
        with np.errstate(all="ignore"):
            scale = self.bias + self.alpha / self.size * np.asarray(near)
            return (wide(x) / scale**self.beta).astype(x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for size in (1, 2, 3, 5):
            yield Sample(Lrn(size, 0.1, 0.5, 2.0), (cases.floats(2, 3, 4, 7),))
        yield Sample(Lrn(5), (cases.floats(1, 2, 2, 3),))
