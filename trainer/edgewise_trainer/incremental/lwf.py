"""Learning without forgetting: what the model said before is a target, too.

Li and Hoiem (2016) record the old model's answers to new inputs and hold the new one's
against them, by the cross entropy of softened probabilities.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from edgewise.ir.graph import Value, constant
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.ops import (
    Add,
    Cast,
    Gather,
    LogSoftmax,
    Mul,
    Neg,
    ReduceMean,
    ReduceSum,
    Reshape,
    Slice,
    Softmax,
)
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.types import DType, TensorType
from edgewise_trainer.incremental.methods import Lwf
from edgewise_trainer.losses import Loss
from edgewise_trainer.update import times


@dataclass(frozen=True, slots=True)
class Remembering:
    """A loss of new targets and of old answers.

    Its target holds both: class numbers in column 0, then the old logits.

    Attributes:
        new: The loss of the targets.
        old: Classes whose answers are to stay, in order.
        how: Temperature and weight.
    """

    new: Loss
    old: tuple[int, ...]
    how: Lwf

    def target(self, output: TensorType) -> TensorType:
        """A row for every example."""
        return TensorType(DType.F32, (output.shape[0], 1 + len(self.old)))

    def __call__(self, output: Value, target: Value) -> Value:
        """``new - weight * T ** 2 * mean(softmax(old / T) . log softmax(now / T))``.

        The square keeps the size of the gradient at every temperature (Hinton et al.,
        2015).
        """
        rows = target.type.shape[0]
        first = Slice((0, 0), (rows, 1), (1, 1))(target)
        classes = Reshape((rows,))(Cast("i64")(first))
        loss = self.new(output, classes)
        before = Slice((0, 1), (rows, len(self.old)), (1, 1))(target)
        now = Gather(axis=1)(output, constant(np.asarray(self.old, np.int64)))
        softness = 1.0 / self.how.temperature
        wanted = Softmax(1)(times(Cast(now.type.dtype.value)(before), softness))
        found = LogSoftmax(1)(times(now, softness))
        each = Neg()(ReduceSum((1,), keepdims=False)(Mul()(wanted, found)))
        mean = ReduceMean((0,), keepdims=False)(each)
        return Add()(loss, times(mean, self.how.weight * self.how.temperature**2))


class Recorder:
    """Adds what a model says to targets.

    Args:
        model: As it is before the task.
        old: Classes whose answers are recorded.
        threads: Of a run.
    """

    def __init__(self, model: Model, old: Collection[int], threads: int | None) -> None:
        self._session = Session(model, SessionConfig(threads=threads))
        self._old = sorted(old)

    def __call__(self, inputs: Mapping[str, Array], target: Array) -> Array:
        """The target that ``Remembering`` wants."""
        logits = next(iter(self._session.run(inputs).values()))
        columns = (target[:, None].astype(np.float32), logits[:, self._old])
        return np.concatenate(columns, axis=1, dtype=np.float32)
