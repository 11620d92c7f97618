"""Activations: the non-linear steps between layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases, formulas
from edgewise.ops.checks import (
    FLOATS,
    NUMBERS,
    same_dtype,
    want,
    want_broadcast,
    wide,
)
from edgewise.ops.formulas import Doubles
from edgewise.ops.softmax import (
    LogSoftmax,
    Softmax,
)
from edgewise.types import DType, TensorType

__all__ = [
    "Celu",
    "Elu",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "LogSoftmax",
    "Mish",
    "Prelu",
    "Relu",
    "Selu",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
]


class Activated(Op):
    """A formula over every element, with the op's attributes as its parameters.

    Class Attributes:
        formula: Computes in double precision.
        limits: Whether the formula has a value at both infinities.
        others: Attributes of further samples.
    """

    in_place = (0,)
    formula: ClassVar[Callable[..., Any]]
    allowed: ClassVar[frozenset[DType]] = FLOATS
    limits: ClassVar[bool] = True
    others: ClassVar[tuple[tuple[float | bool, ...], ...]] = ()

    def infer(self, x: TensorType) -> TensorType:
        want(self, (x,), self.allowed)
        return x

    def reference(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(type(self).formula(wide(x), *self.values), x.dtype)

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        for dtype in ("float32", "float64", "float16"):
            yield from (Sample(cls(), (3 * x,)) for x in cases.arrays(dtype))
            yield Sample(cls(), (cls._special(dtype),))
        for values in cls.others:
            yield Sample(cls(*values), (cls._special("float32"),))
            yield Sample(cls(*values), (3 * cases.floats(3, 17),))

    @classmethod
    def _special(cls, dtype: str) -> Array:
        x = cases.special(dtype)
        return x if cls.limits else x[~np.isinf(x)]


class Relu(Activated, name="relu"):
    """``max(x, 0)``."""

    allowed = NUMBERS

    def reference(self, x: Array) -> Array:
        return np.asarray(np.maximum(x, x.dtype.type(0)))

    @classmethod
    def samples(cls) -> Iterator[Sample]:
        yield from super().samples()
        for dtype in ("int32", "int8"):
            yield Sample(cls(), (cases.extremes(dtype),))

    formula = staticmethod(formulas.relu)


class LeakyRelu(Activated, name="leaky_relu"):
    """``x`` where it is not negative, else ``slope * x``."""

    formula = staticmethod(formulas.leaky_relu)
    others = ((0.2,), (-0.5,), (1.5,))
    slope: float = 0.01


class Elu(Activated, name="elu"):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""

    formula = staticmethod(formulas.elu)
    others = ((0.5,), (2.0,))
    alpha: float = 1.0


def _selu(x: Doubles, alpha: float, gamma: float) -> Doubles:
    return gamma * formulas.elu(x, alpha)


class Selu(Activated, name="selu"):
    """``gamma`` times ``elu``."""

    formula = staticmethod(_selu)
    others = ((1.0, 2.0),)
    alpha: float = 1.6732632423543772
    gamma: float = 1.0507009873554805


def _celu(x: Doubles, alpha: float) -> Doubles:
    negative = alpha * np.expm1(np.minimum(x / alpha, 0.0))
    return np.where(x / alpha > 0, np.maximum(x, 0.0), np.maximum(x, 0.0) + negative)


class Celu(Activated, name="celu"):
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``."""

    formula = staticmethod(_celu)
    others = ((0.5,), (2.0,))
    alpha: float = 1.0


class Sigmoid(Activated, name="sigmoid"):
    """``1 / (1 + exp(-x))``."""

    formula = staticmethod(formulas.sigmoid)


class HardSigmoid(Activated, name="hard_sigmoid"):
    """``min(max(alpha * x + beta, 0), 1)``."""

    formula = staticmethod(formulas.hard_sigmoid)
    others = ((1.0 / 6.0, 0.5), (0.5, 0.25))
    alpha: float = 0.2
    beta: float = 0.5


class HardSwish(Activated, name="hard_swish"):
    """``x * min(max(x / 6 + 1 / 2, 0), 1)``."""

    formula = staticmethod(formulas.hard_swish)
    limits = False


class Silu(Activated, name="silu"):
    """``x * sigmoid(x)``."""

    formula = staticmethod(formulas.silu)
    limits = False


class Tanh(Activated, name="tanh"):
    """The hyperbolic tangent."""

    formula = np.tanh


def _gelu(x: Doubles, approximate: bool) -> Doubles:
    return formulas.gelu_tanh(x) if approximate else formulas.gelu(x)


class Gelu(Activated, name="gelu"):
    """``x * P(X <= x)`` for a normal X, exactly or by its tanh approximation."""

    formula = staticmethod(_gelu)
    limits = False
    others = ((True,),)
    approximate: bool = False


class Softplus(Activated, name="softplus"):
    """``log(1 + exp(x))``."""

    formula = staticmethod(formulas.softplus)


class Softsign(Activated, name="softsign"):
    """``x / (1 + |x|)``."""

    formula = staticmethod(formulas.softsign)
    limits = False


class Mish(Activated, name="mish"):
    """``x * tanh(softplus(x))``."""

    formula = staticmethod(formulas.mish)
    limits = False


def _thresholded(x: Doubles, alpha: float) -> Doubles:
    return np.where(x > alpha, x, 0.0)


class ThresholdedRelu(Activated, name="thresholded_relu"):
    """``x`` where it is larger than ``alpha``, else 0: for NaN as well."""

    formula = staticmethod(_thresholded)
    others = ((0.5,), (-2.0,))
    alpha: float = 1.0


class Prelu(Op, name="prelu"):
    """``x`` where it is not negative, else ``slope * x``.

    The slope broadcasts to ``x``.
    """

    in_place = (0,)

    def infer(self, x: TensorType, slope: TensorType) -> TensorType:
        same_dtype(self, x, slope)
        want(self, (x,), FLOATS)
        want_broadcast(self, "slope", slope, x.shape)
        return x

    def reference(self, x: Array, slope: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.where(x < 0, slope * x, x)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape, slope in (
            ((0,), (1,)),
            ((7,), (7,)),
            ((3, 17), (17,)),
            ((3, 17), (1,)),
            ((2, 4, 5, 3), (3,)),
            ((2, 3, 4, 5), (3, 1, 1)),
        ):
            inputs = (cases.floats(*shape), cases.floats(*slope, seed=1))
            yield Sample(Prelu(), inputs)
        yield Sample(Prelu(), (cases.special(), cases.positive(1)))
