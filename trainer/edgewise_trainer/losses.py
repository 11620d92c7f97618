"""Losses: how far an output is from its target, as one number in graph terms.

Definitions and defaults are PyTorch's, so that numbers can be compared.  A loss is any
callable ``loss(output, target) -> Value`` that gives a scalar; ``target(type)`` of it,
where it has one, tells the type of the target of an output, which is else the output's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Abs,
    Add,
    Div,
    Equal,
    Expand,
    Gather,
    GatherElements,
    Less,
    LogSoftmax,
    Mul,
    Neg,
    Not,
    ReduceMean,
    ReduceSum,
    Relu,
    Reshape,
    Softplus,
    Sub,
    Where,
)
from edgewise.types import DType, TensorType
from edgewise_trainer.terms import scalar, zeros


class Loss(Protocol):
    """What trains a model: a scalar to make small."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss, a scalar of the output's type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEntropy:
    """``-log softmax(output)[target]``, averaged; classes are axis 1.

    Attributes:
        weight: A factor for each class; the average is weighted by them.
        label_smoothing: The part of each target that is spread over all classes.
        ignore_index: A target that does not count.
    """

    weight: tuple[float, ...] | None = None
    label_smoothing: float = 0.0
    ignore_index: int = -100

    def __post_init__(self) -> None:
        if not 0.0 <= self.label_smoothing <= 1.0:
            raise ConfigError(
                f"label_smoothing={self.label_smoothing!r}: want a number from 0 to 1"
            )

    def target(self, output: TensorType) -> TensorType:
        """Class numbers, without the axis of classes."""
        if output.rank < 2:
            raise ConfigError(
                f"cross_entropy: got an output {output}; want [N, C, ...]"
            )
        shape = (output.shape[0], *output.shape[2:])
        return TensorType(DType.I64, shape)

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        log = LogSoftmax(1)(output)
        counted = Not()(Equal()(target, constant(np.asarray(self.ignore_index))))
        classes = Where()(counted, target, constant(np.asarray(0)))
        factor = self._factor(classes, output)
        factor = Where()(counted, factor, zeros(factor))
        shape = (output.type.shape[0], 1, *output.type.shape[2:])
        picked = GatherElements(1)(log, Reshape(shape)(classes))
        loss = Neg()(Mul()(Reshape(classes.type.shape)(picked), factor))
        total = Div()(_total(loss), _total(factor))
        if not self.label_smoothing:
            return total
        return self._smoothed(total, log, counted, factor)

    def _factor(self, classes: Value, like: Value) -> Value:
        """What each target counts."""
        if self.weight is None:
            return Expand(classes.type.shape)(scalar(1.0, like))
        weight = constant(np.asarray(self.weight, like.type.dtype.numpy))
        return Gather()(weight, classes)

    def _smoothed(
        self, total: Value, log: Value, counted: Value, factor: Value
    ) -> Value:
        """Part of the loss is that of all classes alike."""
        number = log.type.shape[1]
        if not isinstance(number, int):
            raise ConfigError("label_smoothing: the number of classes must be known")
        weighted = log
        if self.weight is not None:
            shape = (1, number, *(1,) * (log.type.rank - 2))
            weight = constant(np.asarray(self.weight, log.type.dtype.numpy))
            weighted = Mul()(log, Reshape(shape)(weight))
        each = Neg()(ReduceSum((1,), keepdims=False)(weighted))
        each = Where()(counted, each, zeros(each))
        spread = Div()(_total(each), _total(factor))
        part = self.label_smoothing
        kept = Mul()(total, scalar(1.0 - part, total))
        return Add()(kept, Mul()(spread, scalar(part / number, total)))


@dataclass(frozen=True, slots=True)
class MeanSquaredError:
    """``(output - target) ** 2``, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        gap = Sub()(output, target)
        return _mean(Mul()(gap, gap))


@dataclass(frozen=True, slots=True)
class MeanAbsoluteError:
    """``|output - target|``, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        return _mean(Abs()(Sub()(output, target)))


@dataclass(frozen=True, slots=True)
class Huber:
    """Half the square up to ``delta``, a line beyond it, averaged.

    Attributes:
        delta: Where the line begins.
    """

    delta: float = 1.0

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        gap = Sub()(output, target)
        size, delta = Abs()(gap), scalar(self.delta, gap)
        square = Mul()(Mul()(gap, gap), scalar(0.5, gap))
        line = Mul()(delta, Sub()(size, scalar(0.5 * self.delta, gap)))
        return _mean(Where()(Less()(size, delta), square, line))


@dataclass(frozen=True, slots=True)
class BinaryCrossEntropy:
    """Of logits: ``max(x, 0) - x * target + log(1 + exp(-|x|))``, averaged."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        tail = Softplus()(Neg()(Abs()(output)))
        return _mean(Add()(Sub()(Relu()(output), Mul()(output, target)), tail))


NAMED: dict[str, Callable[[], Loss]] = {
    "cross_entropy": CrossEntropy,
    "mse": MeanSquaredError,
    "mae": MeanAbsoluteError,
    "huber": Huber,
    "binary_cross_entropy": BinaryCrossEntropy,
}


def named(name: str) -> Loss:
    """The loss called ``name``, with its defaults.

    Raises:
        ConfigError: There is none.
    """
    if name not in NAMED:
        raise ConfigError(
            f"loss={name!r}: want one of {', '.join(NAMED)}, or a callable"
        )
    return NAMED[name]()


def found(loss: str | Loss) -> Loss:
    """A loss by its name, or as it is given.

    Raises:
        ConfigError: It is neither.
    """
    if isinstance(loss, str):
        return named(loss)
    if not callable(loss):
        raise ConfigError(f"loss={loss!r}: want a name or a callable")
    return loss


def target_type(loss: Loss, output: TensorType) -> TensorType:
    """The type of the target that a loss wants for an output."""
    tell: Callable[[TensorType], TensorType] | None = getattr(loss, "target", None)
    return output if tell is None else tell(output)


def scalar_loss(
    loss: Callable[[Value, Value], Value], output: Value, target: Value
) -> Value:
    """The loss of an output.

    Raises:
        ConfigError: It is not one real number.
    """
    value = loss(output, target)
    if value.type.shape != () or not value.type.dtype.is_float:
        raise ConfigError(f"the loss gives {value.type}; want one real number")
    return value


def _mean(value: Value) -> Value:
    return ReduceMean(tuple(range(value.type.rank)), keepdims=False)(value)


def _total(value: Value) -> Value:
    return ReduceSum(tuple(range(value.type.rank)), keepdims=False)(value)
