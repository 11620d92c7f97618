"""Losses of outputs that are numbers like their targets."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.ir.graph import Value
from edgewise.ops import (
    Abs,
    Add,
    Less,
    Mul,
    Neg,
    ReduceSum,
    Relu,
    Softplus,
    Sub,
    Where,
)
from edgewise_trainer.losses.loss import mean
from edgewise_trainer.losses.pairs import unit
from edgewise_trainer.terms import scalar
from edgewise_trainer.wanted import want_positive


@dataclass(frozen=True, slots=True)
class MeanSquaredError:
    """``(output - target) ** 2``, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        gap = Sub()(output, target)
        return mean(Mul()(gap, gap))


@dataclass(frozen=True, slots=True)
class MeanAbsoluteError:
    """``|output - target|``, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        return mean(Abs()(Sub()(output, target)))


@dataclass(frozen=True, slots=True)
class Huber:
    """Half the square up to ``delta``, a line beyond it, averaged.

    Attributes:
        delta: Where the line begins.
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        want_positive("delta", self.delta)

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        gap = Sub()(output, target)
        size, delta = Abs()(gap), scalar(self.delta, gap)
        square = Mul()(Mul()(gap, gap), scalar(0.5, gap))
        line = Mul()(delta, Sub()(size, scalar(0.5 * self.delta, gap)))
        return mean(Where()(Less()(size, delta), square, line))


@dataclass(frozen=True, slots=True)
class BinaryCrossEntropy:
    """Of logits: ``max(x, 0) - x * target + log(1 + exp(-|x|))``, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        tail = Softplus()(Neg()(Abs()(output)))
        return mean(Add()(Sub()(Relu()(output), Mul()(output, target)), tail))


@dataclass(frozen=True, slots=True)
class Cosine:
    """``1 - cos(output, target)`` of vectors along the last axis, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        axis = output.type.rank - 1
        cosine = ReduceSum((axis,), keepdims=False)(Mul()(unit(output), unit(target)))
        return mean(Sub()(scalar(1.0, cosine), cosine))
