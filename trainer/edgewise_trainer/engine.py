"""What carries out steps: a session over the functions of a training step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from edgewise.errors import ShapeError
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.memory import MemoryReport
from edgewise.runtime.session import Session
from edgewise.runtime.workspace import threads_of
from edgewise_trainer.data import as_target
from edgewise_trainer.names import (
    APPLY,
    LOSS,
    RATE,
    STEP,
    TARGET,
    WEIGHT,
)
from edgewise_trainer.names import PREPARE as DERIVING
from edgewise_trainer.prediction import Prediction, predicted
from edgewise_trainer.task import WHOLE, Setting, Step, Way
from edgewise_trainer.values import want_states
from edgewise_trainer.ways import work_of

Feed = Mapping[str, Any]


class Engine:
    """Runs training steps.

    Args:
        model: The model; where its parameters begin.
        step: Its training step.
        states: What the step remembers; as at first where one is missing.
        config: How to run it.
        way: In which parts.
        batch: Examples of a batch, for which the way is made.
    """

    def __init__(
        self,
        model: Model,
        step: Step,
        states: Mapping[str, Array],
        config: SessionConfig,
        way: Way = WHOLE,
        batch: int = 1,
    ) -> None:
        self.way, self._mapped = way, model.path is not None
        self._work = work_of(step, way, batch)
        self._module = self._work.module(model.module, step.states, states)
        first, *others = self._work.functions
        module = Model(self._module)
        self._session = Session(module, config, function=first, also=others)
        kinds = {info.name: info.dtype for info in self._session.inputs}
        self._target = kinds[TARGET].numpy
        updates = self._work.functions[first].updates.keys()
        # Statistics of batches are all that a part assigns beside its gradients.
        self._follows = len(updates) > len(self._work.sums)

    @property
    def variables(self) -> Mapping[str, Array]:
        """Arrays of the variables, as they are stored; steps change them."""
        return self._session.variables

    def restart(self, module: Module, step: Step, state: Mapping[str, Array]) -> bool:
        """Begin anew with the variables of a module; False where that cannot be.

        Variables that no step assigns, or from which others are derived, want a new
        session.
        """
        want_states(step.states, state, all_of=False)
        assigned, old = step.graph.updates.keys(), self._module.variables
        same = all(
            key in assigned or info.initial is old[key].initial
            for key, info in module.variables.items()
            if key in old and key not in {own.key for own in step.states}
        )
        if not same or DERIVING in self._module.functions:
            return False
        for key in assigned & module.variables.keys():
            initial = module.variables[key].initial
            if initial is not None:
                np.copyto(self.variables[key], initial)
        for info in step.states:
            first = state.get(info.key, info.initial)
            np.copyto(self.variables[info.key], 0 if first is None else first)
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """What is done to keep to a budget, as sentences."""
        notes = []
        if self.way.examples is not None:
            text = f"in parts of {self.way.examples} examples: gradients are added up"
            if self._follows:
                text += ", batch norms see one part each"
            notes.append(text)
        if self.way.segments > 1:
            notes.append(f"in {self.way.segments} segments: activations are made again")
        return tuple(notes)

    @property
    def memory(self) -> MemoryReport:
        """What steps take, of the largest batch so far."""
        return self._session.memory

    def run(self, feed: Feed, target: object, rate: float, number: int) -> float:
        """Do the step of a number, from 1 on; the loss before it."""
        whole = {**feed, TARGET: as_target(target, self._target)}
        clock = {
            RATE: np.asarray(rate, np.float32),
            STEP: np.asarray(number, np.float64),
        }
        if self.way.examples is None:
            return float(self._session.run({**whole, **clock})[LOSS])
        return self._gradually(whole, clock, self.way.examples)

    def _gradually(self, whole: Feed, clock: Feed, most: int) -> float:
        """Add up the gradients of parts, in order, and spend them."""
        for info in self._work.sums:
            self.variables[info.key].fill(0)
        total = count = 0.0
        for part in self._parts(whole, most):
            found = self._session.run(part)
            weight = float(found[WEIGHT])
            total += float(found[LOSS]) * weight if weight else 0.0
            count += weight
        spent = {WEIGHT: np.asarray(count, np.float32), **clock}
        self._session.run(spent, function=APPLY)
        return total / count if count else float("nan")

    def _parts(self, whole: Feed, most: int) -> Iterator[Feed]:
        """Parts of about equal size, of ``most`` examples at most."""
        size, batched = len(whole[TARGET]), self._work.batched
        for name in batched & whole.keys():
            if len(whole[name]) != size:
                got = len(whole[name])
                raise ShapeError(f"{name}: got {got} examples; want {size} targets")
        number = max(-(-size // most), 1)
        for index in range(number):
            low, high = (size * j // number for j in (index, index + 1))
            yield {
                name: array[low:high] if name in batched else array
                for name, array in whole.items()
            }

    def predict(self, batch: int) -> Prediction | None:
        """What a step of that many examples takes; it is planned for that."""
        examples = min(batch, self.way.examples or batch)
        plans = [
            self._session.plan(shapes, function=name)
            for name, shapes in self._work.shapes(examples).items()
        ]
        made = [plan for plan in plans if plan is not None]
        if len(made) < len(plans):
            return None
        threads = self._session.threads
        found = predicted(made, self._module, threads, mapped=self._mapped)
        return found._replace(seconds=found.seconds * -(-batch // examples))


def engine_for(
    model: Model,
    step: Step,
    states: Mapping[str, Array],
    config: SessionConfig,
    setting: Setting,
    batch: int,
) -> Engine:
    """What carries out steps within the memory that a setting allows.

    Raises:
        ConfigError: No way of doing a step keeps to it.
    """
    way, budget = setting.way, setting.memory_budget
    if way is None and budget is not None:
        from edgewise_trainer.budget import Case, way_within  # noqa: PLC0415 - rare

        way = way_within(Case(model, step, batch, threads_of(config)), budget)
    return Engine(model, step, states, config, way or WHOLE, batch)
