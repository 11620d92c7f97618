"""Elastic weight consolidation: what earlier tasks need, and its pull on a step.

Kirkpatrick et al. (2017) add ``strength / 2 * F * (p - p0) ** 2`` to the loss, ``F``
the diagonal of the Fisher information.  Its gradient is ``strength * F * (p - p0)``,
which joins that of the loss before the optimizer sees it.  Importances of all tasks are
summed and pull towards the latest parameters (Huszar, 2018): memory does not grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.ops import Add, Mul, Sub
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise_trainer.around import Around
from edgewise_trainer.incremental.classes import Growth, as_logical, as_stored
from edgewise_trainer.losses import CrossEntropy, Loss
from edgewise_trainer.schedules import Rate
from edgewise_trainer.task import Trainable
from edgewise_trainer.terms import scalar
from edgewise_trainer.trainer import Trainer
from edgewise_trainer.update import Clock, Slots

ANCHOR, IMPORTANCE, SQUARES = "anchor", "importance", "squares"


@dataclass(frozen=True, slots=True)
class Anchored(Around):
    """An optimizer whose steps are pulled back to where parameters were.

    Bounds on gradients are those of the loss alone.

    Attributes:
        strength: Of the pull.
    """

    strength: float

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of the optimizer; where parameters were, and how much that matters."""
        return (*self.optimizer.slots, ANCHOR, IMPORTANCE)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``g += strength * importance * (p - anchor)``, then the optimizer's step."""
        away = Sub()(parameter, slots[ANCHOR])
        pull = Mul()(Mul()(slots[IMPORTANCE], away), scalar(self.strength, away))
        return self.optimizer.update(parameter, Add()(grad, pull), slots, clock)


@dataclass(frozen=True, slots=True)
class SquaredGradients:
    """No optimizer: sums the squares of gradients and moves nothing."""

    lr: Rate = 0.0

    @property
    def slots(self) -> tuple[str, ...]:
        """The sum."""
        return (SQUARES,)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``s += g ** 2``."""
        del clock
        return parameter, {SQUARES: Add()(slots[SQUARES], Mul()(grad, grad))}


class Past(NamedTuple):
    """What earlier tasks need, by parameter, in the shapes of the source model."""

    anchors: dict[str, Array]
    importances: dict[str, Array]

    def state(self, model: Model) -> dict[str, Array]:
        """The slots of ``Anchored``."""
        found = {}
        for slot, arrays in ((ANCHOR, self.anchors), (IMPORTANCE, self.importances)):
            for key, array in arrays.items():
                info = model.module.variables[key]
                found[f"{key}/{slot}"] = as_stored(info, array)
        return found

    def grown(self, growth: Growth) -> Past:
        """The same of a model with more classes: nothing holds those."""
        enlarged = (
            {key: growth.of(key, array) for key, array in arrays.items()}
            for arrays in self
        )
        return Past(*enlarged)

    def after(self, model: Model, importances: Mapping[str, Array]) -> Past:
        """With one more task."""
        anchors = model.parameters()
        total = {
            key: self.importances.get(key, np.zeros_like(array)) + array
            for key, array in importances.items()
        }
        return Past({key: np.array(anchors[key]) for key in total}, total)


def importances(
    model: Model,
    loss: Loss,
    trainable: Trainable,
    examples: Iterable[tuple[Mapping[str, Array], Array]],
    rng: np.random.Generator,
    threads: int | None,
) -> dict[str, Array]:
    """The diagonal of the Fisher information, by parameter, in logical shapes.

    The mean of squared gradients of single examples.  Classes are drawn from what the
    model says, as the definition has it; other targets are those of the data.

    Args:
        model: What was learned.
        loss: How.
        trainable: Parameters to ask for.
        examples: Batches of one.
        rng: Draws classes.
        threads: Of a step.

    Raises:
        ConfigError: There are no examples.
    """
    trainer = Trainer(model, loss, SquaredGradients(), trainable, threads=threads)
    count = 0
    with Session(model, SessionConfig(threads=threads)) as session:
        for inputs, target in examples:
            wanted = target
            if isinstance(loss, CrossEntropy):
                wanted = _drawn(next(iter(session.run(inputs).values())), rng)
            trainer.step(inputs, wanted)
            count += 1
    if not count:
        raise ConfigError("ewc: got no examples of the task")
    ending = f"/{SQUARES}"
    return {
        (key := name.removesuffix(ending)): as_logical(
            model.module.variables[key], array / np.asarray(count, array.dtype)
        )
        for name, array in trainer.state().items()
        if name.endswith(ending)
    }


def _drawn(logits: Array, rng: np.random.Generator) -> Array:
    """Classes drawn by their probabilities; axis 1 has the classes."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    reached = np.cumsum(np.exp(shifted), axis=1)
    bound = rng.random((len(logits), 1, *logits.shape[2:])) * reached[:, -1:]
    found: Array = (reached < bound).sum(axis=1)
    return found
