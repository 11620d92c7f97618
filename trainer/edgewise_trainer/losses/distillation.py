"""Learning from a larger model: its output, softened, beside the targets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value
from edgewise.model import Model
from edgewise.ops import Add, Exp, LogSoftmax, Mul, ReduceSum, Sub
from edgewise.ops.checks import fits
from edgewise.types import TensorType
from edgewise_trainer.frozen import frozen
from edgewise_trainer.losses.classes import CrossEntropy
from edgewise_trainer.losses.loss import Loss, mean, target_type
from edgewise_trainer.terms import scalar
from edgewise_trainer.wanted import want_number, want_positive


def distillation(
    teacher: Model | str | os.PathLike[str],
    temperature: float = 2.0,
    weight: float = 0.5,
    loss: Loss | None = None,
) -> Distillation:
    """The loss of learning from a teacher (Hinton et al., 2015).

    ``weight t^2 KL(softmax(teacher / t), softmax(output / t)) + (1 - weight) loss``.
    The teacher runs as a part of the step, with the inputs of the model by their names.

    Args:
        teacher: A model or its file; its first output scores the same classes.
        temperature: What softens both outputs.
        weight: What the teacher counts; the rest is what the targets count.
        loss: Of the targets; cross entropy if there is none.
    """
    held = teacher if isinstance(teacher, Model) else Model.load(teacher)
    return Distillation(held, temperature, weight, loss or CrossEntropy())


@dataclass(frozen=True, slots=True)
class Distillation:
    """A loss of output and target, and of what a teacher gives for the same inputs.

    Attributes:
        teacher: The teacher.
        temperature: What softens both outputs.
        weight: What the teacher counts.
        loss: Of the targets.
    """

    teacher: Model
    temperature: float
    weight: float
    loss: Loss

    def __post_init__(self) -> None:
        want_positive("temperature", self.temperature)
        want = "a number from 0 to 1"
        want_number("weight", self.weight, want, lambda x: 0.0 <= x <= 1.0)
        if not isinstance(self.teacher, Model) or not callable(self.loss):
            raise ConfigError("distillation: want a model as teacher, and a loss")

    def target(self, output: TensorType) -> TensorType:
        """That of the loss of the targets."""
        return target_type(self.loss, output)

    def __call__(self, output: Value, target: Value) -> Value:
        """Not without the inputs.

        Raises:
            ConfigError: Always.
        """
        del output, target
        raise ConfigError("distillation: want the inputs of the model, too (over)")

    def over(self, inputs: Sequence[Value]) -> Loss:
        """The loss of a model that reads ``inputs``.

        Raises:
            ConfigError: The teacher wants others.
            ShapeError: It does not work at their sizes.
        """
        return _Taught(self, frozen(self.teacher.module, inputs))


@dataclass(frozen=True, slots=True)
class _Taught:
    """The loss for one set of inputs.

    Attributes:
        how: What was asked for.
        advice: What the teacher gives.
    """

    how: Distillation
    advice: Value

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss."""
        how, advice = self.how, self.advice
        if not fits(advice.type.shape, output.type.shape):
            raise ConfigError(
                f"the teacher gives {advice.type}; want {output.type}, as the model"
            )
        softer = scalar(1.0 / how.temperature, output)
        student = LogSoftmax(1)(Mul()(output, softer))
        teacher = LogSoftmax(1)(Mul()(advice, softer))
        gap = Mul()(Exp()(teacher), Sub()(teacher, student))
        taught = mean(ReduceSum((1,), keepdims=False)(gap))
        part = scalar(how.weight * how.temperature**2, taught)
        rest = scalar(1.0 - how.weight, taught)
        own = how.loss(output, target)
        return Add()(Mul()(taught, part), Mul()(own, rest))
