"""Losses of outputs that score classes along axis 1."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Add,
    Div,
    Equal,
    Expand,
    Gather,
    GatherElements,
    Greater,
    Less,
    Log,
    LogSoftmax,
    Mul,
    Neg,
    Not,
    ReduceMean,
    ReduceSum,
    Relu,
    Reshape,
    Sub,
    Where,
)
from edgewise.types import TensorType
from edgewise_trainer.losses.loss import class_numbers, mean, total
from edgewise_trainer.terms import scalar, zeros
from edgewise_trainer.wanted import want_count, want_kinds, want_number

LARGEST = np.iinfo(np.int64).max


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
        smoothing, want = self.label_smoothing, "a number from 0 to 1"
        want_number("label_smoothing", smoothing, want, lambda x: 0.0 <= x <= 1.0)
        want_count("ignore_index", self.ignore_index, -LARGEST)
        if self.weight is not None:
            want_kinds("weight", self.weight, Real, "a number for each class")
            for weight in self.weight:
                want_number("weight", weight)

    def target(self, output: TensorType) -> TensorType:
        """Class numbers, without the axis of classes."""
        return class_numbers("cross_entropy", output)

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        log = LogSoftmax(1)(output)
        counted, classes, factor = self._counted(output, target)
        shape = (output.type.shape[0], 1, *output.type.shape[2:])
        picked = GatherElements(1)(log, Reshape(shape)(classes))
        loss = Neg()(Mul()(Reshape(classes.type.shape)(picked), factor))
        found = _share(total(loss), total(factor))
        if not self.label_smoothing:
            return found
        return self._smoothed(found, log, counted, factor)

    def weight_of(self, output: Value, target: Value) -> Value:
        """What it divides by: the weights of all targets that count."""
        return total(self._counted(output, target)[2])

    def _counted(self, output: Value, target: Value) -> tuple[Value, Value, Value]:
        """Whether each target counts, its class, and how much it counts."""
        counted = Not()(Equal()(target, constant(np.asarray(self.ignore_index))))
        classes = _places(Where()(counted, target, constant(np.asarray(0))), output)
        factor = self._factor(classes, output)
        return counted, classes, Where()(counted, factor, zeros(factor))

    def _factor(self, classes: Value, like: Value) -> Value:
        """What each target counts."""
        number = like.type.shape[1]
        if self.weight is None:
            return Expand(classes.type.shape)(scalar(1.0, like))
        if isinstance(number, int) and len(self.weight) != number:
            got = len(self.weight)
            raise ConfigError(f"weight: got {got} numbers; want {number}, as classes")
        weight = constant(np.asarray(self.weight, like.type.dtype.numpy))
        return Gather()(weight, classes)

    def _smoothed(
        self, sharp: Value, log: Value, counted: Value, factor: Value
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
        spread = _share(total(each), total(factor))
        part = self.label_smoothing
        kept = Mul()(sharp, scalar(1.0 - part, sharp))
        return Add()(kept, Mul()(spread, scalar(part / number, sharp)))


@dataclass(frozen=True, slots=True)
class Hinge:
    """``max(0, margin - output[target] + output[c])`` over all other classes ``c``.

    Summed, divided by the number of classes, averaged (``MultiMarginLoss``).

    Attributes:
        margin: By how much the right class is to be ahead.
        power: 1, or 2 for the square.
    """

    margin: float = 1.0
    power: int = 1

    def __post_init__(self) -> None:
        want_number("margin", self.margin)
        if self.power not in (1, 2):
            raise ConfigError(f"power={self.power!r}: want 1 or 2")

    def target(self, output: TensorType) -> TensorType:
        """Class numbers, without the axis of classes."""
        return class_numbers("hinge", output)

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        shape = (output.type.shape[0], 1, *output.type.shape[2:])
        right = GatherElements(1)(output, Reshape(shape)(_places(target, output)))
        gap = Relu()(Add()(Sub()(output, right), scalar(self.margin, output)))
        if self.power == 2:
            gap = Mul()(gap, gap)
        # The right class itself counts the margin, whatever its score.
        own = scalar(max(self.margin, 0.0) ** self.power, output)
        each = Sub()(ReduceMean((1,), keepdims=False)(gap), self._of_all(own, output))
        return mean(each)

    def _of_all(self, own: Value, output: Value) -> Value:
        """What one class has in the mean over all."""
        ones = Expand(output.type.shape)(scalar(1.0, output))
        count = ReduceSum((1,), keepdims=False)(ones)
        return Div()(own, count)


@dataclass(frozen=True, slots=True)
class KLDivergence:
    """``sum target (log target - log softmax(output))``, averaged over all but classes.

    Targets are probabilities, outputs are logits (``KLDivLoss(reduction="batchmean")``
    of their logarithmic softmax).
    """

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        none = zeros(target)
        some = Greater()(target, none)
        safe = Where()(some, target, Expand(target.type.shape)(scalar(1.0, target)))
        gap = Sub()(Log()(safe), LogSoftmax(1)(output))
        return mean(ReduceSum((1,), keepdims=False)(Mul()(target, gap)))


def _places(classes: Value, output: Value) -> Value:
    """Class numbers as places along axis 1, where one below 0 is none of them.

    A gather takes such a place from the end of the axis.
    """
    number = output.type.shape[1]
    beyond = number if isinstance(number, int) else LARGEST
    below = Less()(classes, constant(np.asarray(0)))
    return Where()(below, constant(np.asarray(beyond)), classes)


def _share(part: Value, whole: Value) -> Value:
    """``part / whole``; of nothing NaN without a slope, as PyTorch has it."""
    none = Equal()(whole, zeros(whole))
    safe = Where()(none, scalar(1.0, whole), whole)
    return Where()(none, scalar(float("nan"), whole), Div()(part, safe))
