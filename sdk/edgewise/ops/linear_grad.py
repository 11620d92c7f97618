"""What training needs of products with packed weights."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, integers, same_dtype, want, want_shape, wide
from edgewise.ops.matmul import InnerProducts
from edgewise.ops.pack import PANEL, PackPanels, matrices, panels
from edgewise.types import TensorType


class LinearInputGrad(InnerProducts, name="linear_input_grad"):
    """Gradient ``[..., K]`` of the rows of a ``linear``, of ``dy[..., N]``."""

    width: Dim  # K

    def infer(self, dy: TensorType, w: TensorType) -> TensorType:
        same_dtype(self, dy, w)
        want(self, (dy,), FLOATS)
        if not dy.rank:
            raise self.refuse((dy, w), "rows")
        want_shape(self, "weight", w, panels(dy.shape[-1]), self.width, PANEL)
        return dy.with_shape((*dy.shape[:-1], self.width))

    def reference(self, dy: Array, w: Array) -> Array:
        (width,) = integers(self, (self.width,))
        weight = matrices(wide(w), dy.shape[-1]).reshape(width, dy.shape[-1])
        with np.errstate(all="ignore"):
            return np.asarray(wide(dy) @ weight.T, dy.dtype)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for rows, k, n in _SHAPES:
            w = PackPanels((0, 1)).reference(cases.floats(k, n, seed=2))
            yield Sample(LinearInputGrad(k), (cases.floats(*rows, n), w))


class LinearWeightGrad(Op, name="linear_weight_grad"):
    """Gradient of the panels ``[P, K, 16]`` of a ``linear``, of its rows and ``dy``."""

    def infer(self, x: TensorType, dy: TensorType) -> TensorType:
        same_dtype(self, x, dy)
        want(self, (x,), FLOATS)
        if not x.rank:
            raise self.refuse((x, dy), "rows")
        want_shape(self, "dy", dy, *x.shape[:-1], dy.shape[-1] if dy.rank else 1)
        return x.with_shape((panels(dy.shape[-1]), x.shape[-1], PANEL))

    def reference(self, x: Array, dy: Array) -> Array:
        rows = wide(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
        grads = wide(dy).reshape(len(rows), dy.shape[-1])
        with np.errstate(all="ignore"):
            total = np.asarray(rows.T @ grads, x.dtype)
        return PackPanels((0, 1)).reference(total)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        width = inputs[0].dims[-1] if inputs[0] else 0
        given = math.prod(inputs[1].dims) if inputs[1] else 0
        return Cost(given * width, super().cost(inputs, outputs).bytes)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for rows, k, n in _SHAPES:
            x, dy = cases.floats(*rows, k), cases.floats(*rows, n, seed=1)
            yield Sample(LinearWeightGrad(), (x, dy))


_SHAPES = (
    ((1,), 1, 1),
    ((7,), 3, 17),
    ((33,), 17, 16),
    ((0,), 3, 5),
    ((2, 7), 5, 33),
    ((), 6, 4),
    ((65,), 40, 9),
    ((3,), 70, 100),
)
