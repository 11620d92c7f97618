"""What training needs of running products and of determinants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, same_dtype, want, want_axis, want_shape, wide
from edgewise.ops.linalg import Det
from edgewise.ops.order import Cumprod
from edgewise.types import TensorType


class CumprodGrad(Op, name="cumprod_grad"):
    """Gradient of ``x`` of running products, of ``x`` and ``dy``: no division by zeros.

    ``dx[k]`` is the product of all before k by ``s[k] = dy[k] + x[k + 1] * s[k + 1]``.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: TensorType, dy: TensorType) -> TensorType:
        same_dtype(self, x, dy)
        want(self, (x,), FLOATS)
        want_axis(self, self.axis, x.rank)
        want_shape(self, "dy", dy, *x.shape)
        return x

    def reference(self, x: Array, dy: Array) -> Array:
        pair = (np.moveaxis(wide(array), self.axis, 0) for array in (x, dy))
        values, grads = (array[::-1] if self.reverse else array for array in pair)
        total = np.zeros_like(values)
        with np.errstate(all="ignore"):
            for k in reversed(range(len(values) - 1)):
                last = grads[k + 1] if self.exclusive else values[k + 1] * grads[k + 1]
                total[k] = last + values[k + 1] * total[k + 1]
            if not self.exclusive:
                total = total + grads
            before = np.cumprod(np.concatenate([np.ones_like(values[:1]), values]), 0)
            total = total * before[: len(values)]
        total = total[::-1] if self.reverse else total
        return np.ascontiguousarray(np.moveaxis(total, 0, self.axis), x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in Cumprod.samples():
            (x,) = sample.inputs
            if x is not None and x.dtype.kind == "f":
                dy = cases.floats(*x.shape, dtype=str(x.dtype), seed=1)
                yield Sample(CumprodGrad(*sample.op.values), (x, dy))


class DetGrad(Op, name="det_grad"):
    """Gradient of square matrices, of ``x`` and of ``dy`` of their determinants.

    ``dy`` times the cofactors, by singular values: a matrix without inverse has them.
    """

    def infer(self, x: TensorType, dy: TensorType) -> TensorType:
        same_dtype(self, x, dy)
        want(self, (x,), FLOATS)
        if x.rank < 2:
            raise self.refuse((x, dy), "square matrices in the last two axes")
        want_shape(self, "dy", dy, *x.shape[:-2])
        return x

    def reference(self, x: Array, dy: Array) -> Array:
        with np.errstate(all="ignore"):
            finite = np.isfinite(x).all((-1, -2), keepdims=True)
            u, sizes, v = np.linalg.svd(np.where(finite, wide(x), 0.0))
            sign = np.linalg.det(u) * np.linalg.det(v)
            others = np.where(np.eye(x.shape[-1], dtype=bool), 1.0, sizes[..., None, :])
            products = others.prod(-1)
            cofactors = (u * products[..., None, :]) @ v * sign[..., None, None]
            cofactors = np.where(finite, cofactors, np.nan)
            return np.asarray(wide(dy)[..., None, None] * cofactors, x.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for sample in Det.samples():
            (x,) = sample.inputs
            if x is not None:
                dy = cases.floats(*x.shape[:-2], dtype=str(x.dtype), seed=1)
                yield Sample(DetGrad(), (x, dy))
