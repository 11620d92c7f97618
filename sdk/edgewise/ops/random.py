"""Numbers drawn at random, by a seed in the graph or anew at every run.

The generator is the one whose numbers numpy promises never to change, so that a seed in
a file means the same for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.checks import integers, want, want_shape
from edgewise.types import DType, TensorType


class _Drawn(Op):
    """Floats of type ``to``, drawn independently.

    Input: the seed, an i64 of which the lower 32 bits count; without one, every run
    draws others.
    """

    random = True
    shape: tuple[Dim, ...]
    to: str = "f32"

    def infer(self, seed: TensorType | None) -> TensorType:
        want(self, (seed,), frozenset({DType.I64}))
        want_shape(self, "seed", seed)
        if self.to not in _KINDS:
            raise DTypeError(f"{self.name}: got {self.to!r}; want one of {_KINDS}")
        return TensorType(DType(self.to), self.shape)

    def generator(self, seed: Array | None) -> np.random.RandomState:
        """What draws."""
        return np.random.RandomState(None if seed is None else int(seed) & 0xFFFFFFFF)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for to in ("f32", "f64", "f16"):
            for shape in ((), (0,), (7,), (3, 17)):
                yield Sample(cls(shape, to), (np.asarray(7),))
        yield Sample(cls((5,)), (np.asarray(-1),))


_KINDS = ("f64", "f32", "f16", "bf16")


class RandomUniform(_Drawn, name="random_uniform"):
    """Numbers from ``low`` up to but without ``high``, all equally likely."""

    low: float = 0.0
    high: float = 1.0

    def reference(self, seed: Array | None) -> Array:
        shape, dtype = integers(self, self.shape), DType(self.to).numpy
        drawn = self.generator(seed).uniform(self.low, self.high, shape)
        if not self.low < self.high:
            return np.asarray(drawn, dtype)
        # Rounding to a narrower type must not reach the end that is left out.
        end, below = np.asarray(self.high, dtype), np.asarray(-np.inf, dtype)
        rounded = np.asarray(drawn, dtype)
        return np.where(rounded >= end, np.nextafter(end, below), rounded)


class RandomNormal(_Drawn, name="random_normal"):
    """Numbers of the normal distribution with this mean and standard deviation."""

    mean: float = 0.0
    scale: float = 1.0

    def reference(self, seed: Array | None) -> Array:
        drawn = self.generator(seed).standard_normal(integers(self, self.shape))
        return np.asarray(self.mean + self.scale * drawn, DType(self.to).numpy)
