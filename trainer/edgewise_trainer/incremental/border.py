"""What users bring, as a learner takes it: names, features, classes, measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise_trainer.data import Data, Inputs, as_target, named
from edgewise_trainer.evaluation import evaluated
from edgewise_trainer.incremental.cut import halves
from edgewise_trainer.incremental.knowledge import Knowledge
from edgewise_trainer.incremental.stream import Examples, TaskData
from edgewise_trainer.losses import Loss, picks_classes, target_type
from edgewise_trainer.names import INFER
from edgewise_trainer.wanted import as_array

AT_ONCE = 256  # examples that are only looked at
LEAST = 1e-12  # of a probability whose logarithm is taken


class Border:
    """The way from users' data to what is trained.

    Args:
        model: The whole model.
        loss: That of its first output.
        cut: Where features are taken; None: inputs are trained on as they are.
        threads: Of a run.
    """

    def __init__(
        self, model: Model, loss: Loss, cut: str | None, threads: int | None
    ) -> None:
        self._names = tuple(info.name for info in model.inputs)
        self._loss, self._config = loss, SessionConfig(threads=threads)
        output = model.module.functions[INFER].outputs[0]
        self._target = target_type(loss, output.type).dtype.numpy
        self._front: Session | None = None
        self._watched: tuple[Knowledge, Session] | None = None
        if cut is not None:  # never trained, so that one session does for ever
            self._front = Session(halves(model, cut).front, self._config)

    def task(self, data: Data) -> TaskData:
        """Data with inputs by name, or with features."""
        return TaskData(data, self._prepared, self._target)

    def measured(self, known: Knowledge, task: TaskData) -> dict[str, float]:
        """Loss over a task, and accuracy among the classes seen."""
        batches = task.batches(AT_ONCE, None)
        return evaluated(known.among_seen, self._loss, batches, self._config)

    def scores(self, known: Knowledge, probes: Sequence[Examples]) -> list[float]:
        """Accuracy over each of several sets that are ready, or their losses."""
        model = known.among_seen
        if not picks_classes(self._loss):
            found = (evaluated(model, self._loss, [p], self._config) for p in probes)
            return [each["loss"] for each in found]
        # Run one behind the other: a plan for every size took most of the time.
        inputs = {
            name: np.concatenate([probe[0][name] for probe in probes])
            for name in probes[0][0]
        }
        target = np.concatenate([probe[1] for probe in probes])
        right = []
        with Session(model, self._config) as session:
            for start in range(0, len(target), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                outputs = session.run({name: x[some] for name, x in inputs.items()})
                right.append(next(iter(outputs.values())).argmax(1) == target[some])
        ends = np.cumsum([len(probe[1]) for probe in probes])[:-1]
        return [float(part.mean()) for part in np.split(np.concatenate(right), ends)]

    def doubts(
        self, known: Knowledge, inputs: Inputs, target: Array | None
    ) -> list[float]:
        """How sure a model is not: the loss, or what the likeliest class lacks.

        Raises:
            ConfigError: There is no target, and the output is not of classes.
        """
        if not picks_classes(self._loss):
            if target is None:
                raise ConfigError(f"watch: {self._loss} wants targets")
            task = self.task([(inputs, target)])
            return [self.measured(known, task)["loss"]]
        if self._watched is None or self._watched[0] is not known:
            self._watched = (known, Session(known.among_seen, self._config))
        outputs = self._watched[1].run(self._prepared(inputs))
        logits = next(iter(outputs.values())).astype(np.float64)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        if target is None:
            return [1.0 - float(share) for share in shares.max(axis=1).flat]
        wanted = np.expand_dims(as_target(target, self._target), 1)
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < shares.shape[1]:
            got = f"{wanted.min()} to {wanted.max()}"
            raise ConfigError(
                f"watch: got classes {got}; want 0 to {shares.shape[1] - 1}"
            )
        picked = np.take_along_axis(shares, wanted, axis=1)
        return [-math.log(max(float(share), LEAST)) for share in picked.flat]

    def named(self, inputs: Inputs) -> Mapping[str, Array]:
        """Inputs by their names."""
        return named(inputs, self._names)

    def pair(self, examples: object) -> Examples:
        """Inputs by their names, and targets.

        Raises:
            ConfigError: It is no pair.
        """
        if not isinstance(examples, tuple) or len(examples) != 2:
            got = type(examples).__name__
            raise ConfigError(f"keep: got a {got}; want a pair of inputs and targets")
        return self.named(examples[0]), as_array("targets", examples[1])

    def _prepared(self, inputs: Inputs) -> Mapping[str, Array]:
        whole = self.named(inputs)
        return whole if self._front is None else self._front.run(whole)
