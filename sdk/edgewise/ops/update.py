"""Steps of optimizers: one pass over a parameter and what is remembered of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, same_dtype, want, want_shape, wide
from edgewise.types import TensorType


class SgdUpdate(Op, name="sgd_update"):
    """``v = momentum v + g; p -= rate v``, with ``g`` the gradient and ``decay p``.

    Without a velocity the gradient is the step; with ``nesterov`` it is ahead.
    """

    overwrites = (0, 3)
    momentum: float = 0.0
    nesterov: bool = False
    decay: float = 0.0

    def infer(
        self,
        parameter: TensorType,
        grad: TensorType,
        rate: TensorType,
        velocity: TensorType | None = None,
    ) -> TensorType | tuple[TensorType, ...]:
        same_dtype(self, parameter, grad, rate, velocity)
        want(self, (parameter,), FLOATS)
        want_shape(self, "rate", rate)
        for name, given in (("grad", grad), ("velocity", velocity)):
            want_shape(self, name, given, *parameter.shape)
        return parameter if velocity is None else (parameter, parameter)

    def reference(
        self, parameter: Array, grad: Array, rate: Array, velocity: Array | None = None
    ) -> Array | tuple[Array, ...]:
        with np.errstate(all="ignore"):
            step = whole = _decayed(parameter, grad, self.decay)
            if velocity is None:
                return _rounded(parameter, wide(parameter) - whole * rate)
            step = v = wide(velocity) * self.momentum + whole
            if self.nesterov:
                step = v * self.momentum + whole
            new = wide(parameter) - step * wide(rate)
            return _rounded(parameter, new), _rounded(parameter, v)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for dtype in ("float32", "float64"):
            rate = np.asarray(0.05, dtype)
            for shape in ((), (17,), (3, 33), (0, 4)):
                p, g, v = _arrays(shape, dtype, 3)
                yield Sample(SgdUpdate(), (p, g, rate, None))
                yield Sample(SgdUpdate(decay=0.1), (p, g, rate, None))
                yield Sample(SgdUpdate(0.9), (p, g, rate, v))
                yield Sample(SgdUpdate(0.9, True, 0.1), (p, g, rate, v))
        far = cases.special()
        rate = np.asarray(0.5, "float32")
        yield Sample(SgdUpdate(0.9), (far, far[::-1].copy(), rate, far))


class AdamUpdate(Op, name="adam_update"):
    """``m`` and ``v`` follow g and its square; ``p = kept p - rate m / (r + eps)``.

    ``r`` is the root of v over ``root``; the caller frees ``rate`` and ``root`` of the
    start at 0.
    """

    overwrites = (0, 5, 6)
    first: float = 0.9
    second: float = 0.999
    eps: float = 1e-8
    decay: float = 0.0

    def infer(
        self,
        parameter: TensorType,
        grad: TensorType,
        rate: TensorType,
        root: TensorType,
        kept: TensorType | None,
        mean: TensorType,
        square: TensorType,
    ) -> tuple[TensorType, ...]:
        same_dtype(self, parameter, grad, rate, root, kept, mean, square)
        want(self, (parameter,), FLOATS)
        for name, number in (("rate", rate), ("root", root), ("kept", kept)):
            want_shape(self, name, number)
        for name, given in (("grad", grad), ("mean", mean), ("square", square)):
            want_shape(self, name, given, *parameter.shape)
        return parameter, parameter, parameter

    def reference(
        self,
        parameter: Array,
        grad: Array,
        rate: Array,
        root: Array,
        kept: Array | None,
        mean: Array,
        square: Array,
    ) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            g = _decayed(parameter, grad, self.decay)
            m = wide(mean) * self.first + g * (1 - self.first)
            v = wide(square) * self.second + g * g * (1 - self.second)
            step = m / (np.sqrt(v) / wide(root) + self.eps)
            p = wide(parameter) if kept is None else wide(parameter) * wide(kept)
            found = p - step * wide(rate), m, v
            return tuple(_rounded(parameter, each) for each in found)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for dtype in ("float32", "float64"):
            rate, root, kept = (np.asarray(x, dtype) for x in (0.01, 0.3, 0.99))
            for shape in ((), (17,), (3, 33), (0, 4)):
                p, g, m, v = _arrays(shape, dtype, 4)
                square = np.asarray(v * v, dtype)
                yield Sample(AdamUpdate(), (p, g, rate, root, None, m, square))
                op = AdamUpdate(0.8, 0.99, 1e-6, 0.1)
                yield Sample(op, (p, g, rate, root, kept, m, square))
        far = cases.special()
        rate, root, kept = (np.asarray(x, "float32") for x in (0.01, 0.3, 0.5))
        moments = far, np.abs(far)
        yield Sample(AdamUpdate(), (far, far[::-1].copy(), rate, root, kept, *moments))


def _decayed(parameter: Array, grad: Array, decay: float) -> Array:
    return wide(grad) + wide(parameter) * decay if decay else wide(grad)


def _rounded(like: Array, values: Array) -> Array:
    return np.asarray(values, like.dtype)


def _arrays(shape: tuple[int, ...], dtype: str, count: int) -> tuple[Array, ...]:
    return tuple(
        np.asarray(cases.floats(*shape, seed=seed), dtype).reshape(shape)
        for seed in range(count)
    )
