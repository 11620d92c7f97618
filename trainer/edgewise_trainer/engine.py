"""What carries out steps: a session over the functions of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.memory import MemoryReport
from edgewise.runtime.session import Session
from edgewise_trainer.data import as_target
from edgewise_trainer.names import LOSS, RATE, STEP, TARGET, TRAIN_STEP
from edgewise_trainer.prediction import Prediction, predicted, shapes_of
from edgewise_trainer.task import Step, step_module


class Engine:
    """Runs a training step, a whole batch at once.

    Args:
        model: The model; where its parameters begin.
        step: Its training step.
        states: What the step remembers; as at first where one is missing.
        config: How to run it.
    """

    def __init__(
        self,
        model: Model,
        step: Step,
        states: Mapping[str, Array],
        config: SessionConfig,
    ) -> None:
        self._module = step_module(model.module, step, states)
        self._mapped = model.path is not None
        self._session = Session(Model(self._module), config, function=TRAIN_STEP)
        kinds = {info.name: info.dtype for info in self._session.inputs}
        self._target = kinds[TARGET].numpy

    @property
    def variables(self) -> Mapping[str, Array]:
        """Arrays of the variables, as they are stored; steps change them."""
        return self._session.variables

    @property
    def memory(self) -> MemoryReport:
        """What steps take, of the largest batch so far."""
        return self._session.memory

    def run(
        self, feed: Mapping[str, Any], target: object, rate: float, number: int
    ) -> float:
        """Do the step of a number, from 1 on; the loss before it."""
        found = self._session.run(
            {
                **feed,
                TARGET: as_target(target, self._target),
                RATE: np.asarray(rate, np.float32),
                STEP: np.asarray(number, np.float64),
            }
        )
        return float(found[LOSS])

    def predict(self, batch: int) -> Prediction | None:
        """What a step of that many examples takes; it is planned for that."""
        graph = self._module.functions[TRAIN_STEP]
        plan = self._session.plan(shapes_of(graph, batch))
        return predicted(plan, self._module, self._session.threads, mapped=self._mapped)
