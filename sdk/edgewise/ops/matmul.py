"""Products of matrices: the general one, and the one with packed weights."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edgewise.dims import Shape
from edgewise.ir.op import Array, Cost, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import (
    NUMBERS,
    broadcast,
    may_equal,
    same_dtype,
    want,
    want_shape,
    wide,
)
from edgewise.ops.epilogue import NAMES, finish, parameters, want_epilogue
from edgewise.ops.pack import PANEL, PackPanels, matrices, panels
from edgewise.types import TensorType


def product_shape(op: Op, a: TensorType, b: TensorType) -> Shape:
    """The shape of ``a @ b`` over the last two axes, once they fit."""
    if a.rank < 2 or b.rank < 2 or not may_equal(a.shape[-1], b.shape[-2]):
        raise op.refuse((a, b), "ranks from 2 on and equal inner sizes")
    batch = broadcast(op, a.shape[:-2], b.shape[:-2])
    return (*batch, a.shape[-2], b.shape[-1])


class InnerProducts(Op):
    """An op each of whose results is a sum over the last axis of its first input."""

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        reduced = inputs[0].dims[-1] if inputs[0] else 0
        moved = super().cost(inputs, outputs).bytes
        return Cost(math.prod(outputs[0].dims) * reduced, moved)


class MatMul(InnerProducts, name="matmul"):
    """``a @ b`` over the last two axes; the axes before them broadcast."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        same_dtype(self, a, b)
        want(self, (a,), NUMBERS)
        return a.with_shape(product_shape(self, a, b))

    def reference(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(np.matmul(wide(a), wide(b)).astype(a.dtype))

    @staticmethod
    def samples() -> Iterator[Sample]:
        shapes = (
            ((1, 1), (1, 1)),
            ((7, 3), (3, 17)),
            ((33, 17), (17, 1)),
            ((1, 5), (5, 33)),
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
            ((2, 7, 3), (3, 5)),
            ((7, 3), (2, 3, 5)),
            ((2, 1, 4, 3), (1, 3, 3, 5)),
            ((2, 3, 7, 17), (2, 3, 17, 7)),
        )
        for a, b in shapes:
            yield Sample(MatMul(), (cases.floats(*a), cases.floats(*b, seed=1)))
        for dtype in ("float64", "float16"):
            left = cases.floats(3, 7, dtype=dtype)
            yield Sample(MatMul(), (left, cases.floats(7, 5, dtype=dtype, seed=1)))
        for dtype in ("int64", "int32"):
            left = cases.whole(3, 7, dtype=dtype)
            yield Sample(MatMul(), (left, cases.whole(7, 5, dtype=dtype, seed=1)))
        rows = cases.floats(3, 3)
        rows[1, 1], rows[2, 0] = np.nan, np.inf
        yield Sample(MatMul(), (rows, cases.positive(3, 4)))


class Linear(InnerProducts, name="linear"):
    """``x[..., K]`` by the panels ``w[P, K, 16]``, then the epilogue."""

    in_place = (4,)
    columns: int
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        same_dtype(self, x, w)
        if not x.rank or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), "x, w, scale?, shift?, residual?")
        want_shape(self, "weight", w, panels(self.columns), x.shape[-1], PANEL)
        result = x.with_shape((*x.shape[:-1], self.columns))
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        weight = matrices(wide(w), self.columns)
        with np.errstate(all="ignore"):
            total = wide(x) @ weight.reshape(-1, self.columns)
        activation = (self.activation, self.alpha, self.beta)
        return finish(total, activation, x.dtype, *epilogue)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for rows, k, n in ((1, 1, 1), (7, 3, 17), (33, 17, 16), (0, 3, 5), (5, 0, 3)):
            yield Sample(Linear(n), (cases.floats(rows, k), _weight(k, n)))
        x, w = cases.floats(2, 7, 5), _weight(5, 33)
        scale, shift = cases.positive(33), cases.floats(33)
        residual = cases.floats(2, 7, 33, seed=1)
        yield Sample(Linear(33), (cases.floats(5), w))
        yield Sample(Linear(33), (x, w, scale, None, None))
        yield Sample(Linear(33), (x, w, None, shift, None))
        yield Sample(Linear(33), (x, w, None, None, residual))
        for name in NAMES:
            op = Linear(33, name, *parameters(name))
            yield Sample(op, (x, w, scale, shift, residual))
        bad = cases.floats(8, 5)
        bad[1, 1], bad[2, 0], bad[3, 0] = np.nan, np.inf, -np.inf
        yield Sample(Linear(33), (bad, np.abs(w)))
        yield Sample(Linear(33, "relu"), (bad, np.abs(w)))
        double = tuple(array.astype(np.float64) for array in (x, w, scale, shift))
        yield Sample(Linear(33, "tanh"), double)


def _weight(k: int, n: int) -> Array:
    return PackPanels((0, 1)).reference(cases.floats(k, n, seed=2))
