"""The trainer: a model that learns, in the process that runs it."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from edgewise.errors import CheckpointError
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.memory import MemoryReport
from edgewise_trainer import checkpoint, losses
from edgewise_trainer.data import Data, Inputs, batches, named
from edgewise_trainer.engine import Engine
from edgewise_trainer.evaluation import evaluated
from edgewise_trainer.explain import explained
from edgewise_trainer.form import INFER
from edgewise_trainer.history import Callback, Epoch, History, Progress, told
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD, Optimizer
from edgewise_trainer.report import TrainabilityReport, report
from edgewise_trainer.resized import resized, takes
from edgewise_trainer.schedules import rate_at
from edgewise_trainer.selection import Trainable
from edgewise_trainer.task import aim, step_of
from edgewise_trainer.values import replaced, with_array

logger = logging.getLogger(__name__)


class Trainer:
    """Trains a model on batches.

    Args:
        model: What to train; stays as it is.
        loss: Name of a loss, or one of ``edgewise_trainer.losses``, or a callable that
            makes a scalar of output and target.
        optimizer: How parameters follow their gradients; plain descent at 0.01 if
            there is none.
        trainable: Which parameters: see ``edgewise_trainer.selection.selected``.
        batch_size: What ``fit`` and ``evaluate`` cut data into, if they are not told
            (32 if nothing is); and what ``report`` is for (1 if nothing is).
        threads: Threads of a step; None: as a session has them.
        seed: Of the order of examples.
        state: What the optimizer remembers at the start, as ``state`` gives it; zeros
            where it is missing.

    Attributes:
        steps: Optimizer steps done.
        trained: Names of the parameters that are trained.

    Raises:
        TrainabilityError: An op between the loss and a parameter has no gradient.
        ConfigError: There is no such loss, or no parameter fits ``trainable``.
    """

    def __init__(
        self,
        model: Model,
        loss: str | Loss = "cross_entropy",
        optimizer: Optimizer | None = None,
        trainable: Trainable = "all",
        *,
        batch_size: int | None = None,
        threads: int | None = None,
        seed: int = 0,
        state: Mapping[str, Array] | None = None,
    ) -> None:
        self._model, self._seed, self._trainable = model, seed, trainable
        self._batch_size, self._planned = batch_size or 32, batch_size or 1
        self._loss = losses.found(loss)
        self._optimizer = optimizer or SGD(1e-2)
        self._config = SessionConfig(threads=threads)
        self._open(model.module.functions[INFER], model, state or {})
        self.trained, self._adapters = self._aim.trained, self._aim.adapters
        if self._step.unreached:
            names = ", ".join(self._step.unreached)
            logger.warning("the loss does not depend on %s: never trained", names)
        self._inputs = tuple(info.name for info in model.inputs)
        self.steps, self._epoch, self._batch = 0, 0, 0

    @property
    def memory(self) -> MemoryReport:
        """What a step takes, of the largest batch so far."""
        return self._engine.memory

    @functools.cached_property
    def report(self) -> TrainabilityReport:
        """What is trained, and what a step takes; none is run."""
        prediction = self._engine.predict(self._planned)
        return report(self._aim, self._loss, self._planned, prediction)

    explain = staticmethod(explained)

    def step(self, inputs: Inputs, target: Array) -> float:
        """One step of the optimizer.

        Args:
            inputs: An array for every input of the model, by name; or the array of the
                only one.
            target: What the loss holds the output against.

        Returns:
            The loss before the step.
        """
        rate = rate_at(self._optimizer.lr, self.steps)
        feed = named(inputs, self._inputs)
        self._resize(feed)
        loss = self._engine.run(feed, target, rate, self.steps + 1)
        self.steps += 1
        return loss

    def fit(
        self,
        data: Data,
        epochs: int = 1,
        batch_size: int | None = None,
        validation: Data | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> History:
        """Train for some passes over the data.

        Args:
            data: (inputs, targets) of all examples, shuffled anew for each pass by the
                trainer's seed; or an iterable of batches, which come as they are.
            epochs: Passes.
            batch_size: Examples of a step.
            validation: What is evaluated behind each pass.
            callbacks: See every step and every pass; one that gives True ends it.

        A trainer that was resumed within a pass goes on where it was.
        """
        done: list[Epoch] = []
        size = batch_size or self._batch_size
        for _ in range(epochs):
            epoch, stopped = self._pass(data, size, callbacks, validation)
            done.append(epoch)
            if told(callbacks, epoch) or stopped:
                break
        return History(tuple(done))

    def _pass(
        self,
        data: Data,
        size: int,
        callbacks: Sequence[Callback],
        validation: Data | None,
    ) -> tuple[Epoch, bool]:
        start, total, count, stopped = time.monotonic(), 0.0, 0, False
        number = self._epoch + 1
        order = np.random.default_rng((self._seed, number))
        for inputs, target in batches(data, size, order, self._batch):
            loss = self.step(inputs, target)
            self._batch += 1
            total, count = total + loss, count + 1
            event = Progress(epoch=number, step=self.steps, loss=loss)
            if told(callbacks, event):
                stopped = True
                break
        if not stopped:
            self._epoch, self._batch = number, 0
        found = {} if validation is None else self.evaluate(validation)
        mean = total / count if count else float("nan")
        seconds = time.monotonic() - start
        epoch = Epoch(number=number, loss=mean, seconds=seconds, validation=found)
        return epoch, stopped

    def evaluate(self, data: Data, batch_size: int | None = None) -> dict[str, float]:
        """Mean loss over data, and accuracy where targets are classes.

        The model runs as it will when it is exported: by its running statistics.
        """
        size = batch_size or self._batch_size
        cut = batches(data, size, None)
        pairs = ((named(inputs, self._inputs), target) for inputs, target in cut)
        return evaluated(self.export(), self._loss, pairs, self._config)

    def parameters(self) -> dict[str, Array]:
        """All parameters under their names and in the shapes of the source model."""
        return self.export().parameters()

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        """Give parameters new values; what the optimizer remembers stays.

        Raises:
            ConfigError: There is no such parameter.
            ShapeError: An array has another shape.
        """
        module = self._bare().module
        variables = dict(module.variables)
        states = self.state()
        for key, value in values.items():
            variables[key] = replaced(variables.get(key), key, value)
        for adapter in self._adapters:
            if adapter.weight in values:  # that value is the whole weight
                states[adapter.b.key] = np.zeros_like(states[adapter.b.key])
        self._model = Model(Module(module.functions, variables, module.metadata))
        self._engine = Engine(self._model, self._step, states, self._config)

    def export(self) -> Model:
        """The model as it is now, to run or to save; adapters are merged."""
        model, live = self._bare(), self._engine.variables
        module, variables = model.module, dict(model.module.variables)
        for adapter in self._adapters:
            info = variables[adapter.weight]
            merged = adapter.merged(live[adapter.weight], live)
            variables[adapter.weight] = with_array(info, merged)
        return Model(Module(module.functions, variables, module.metadata))

    def _bare(self) -> Model:
        """The model as it is now, without adapters."""
        module, live = self._model.module, self._engine.variables
        changed = module.variables.keys() & self._step.graph.updates.keys()
        variables = dict(module.variables)
        for key in changed:
            variables[key] = with_array(variables[key], live[key].copy())
        return Model(Module(module.functions, variables, module.metadata))

    def state(self) -> dict[str, Array]:
        """What is learned or remembered beside the parameters, as it is stored."""
        live = self._engine.variables
        return {info.key: live[info.key].copy() for info in self._step.states}

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write all that ``resume`` needs: whole, or not at all.

        Raises:
            CheckpointError: It cannot be written, or holds a loss or an optimizer of
                your own.
        """
        facts = {
            "optimizer": self._optimizer,
            "loss": self._loss,
            "trainable": self._trainable,
            "batch_size": self._batch_size,
            "seed": self._seed,
            "steps": self.steps,
            "epoch": self._epoch,
            "batch": self._batch,
        }
        checkpoint.save(path, self._bare(), self.state(), facts)

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *, threads: int | None = None
    ) -> Self:
        """The trainer of a checkpoint; it goes on bit for bit.

        Raises:
            CheckpointError: The file is damaged, or is no checkpoint.
        """
        model, state, facts = checkpoint.load(path)
        try:
            trainer = cls(
                model,
                facts["loss"],
                facts["optimizer"],
                facts["trainable"],
                batch_size=facts["batch_size"],
                threads=threads,
                seed=facts["seed"],
                state=state,
            )
            trainer.steps, trainer._epoch = facts["steps"], facts["epoch"]
            trainer._batch = facts["batch"]
        except KeyError as error:
            raise CheckpointError(f"{path}: the trainer wrote no {error}") from error
        return trainer

    def _open(self, infer: Graph, model: Model, states: Mapping[str, Array]) -> None:
        """Make the step for a form of the model, and what carries it out."""
        module = model.module.with_function(INFER, infer)
        self._infer, self._aim = infer, aim(module, self._trainable, self._seed)
        self._step = step_of(self._aim, self._loss, self._optimizer)
        self._engine = Engine(model, self._step, states, self._config)

    def _resize(self, feed: Mapping[str, Array]) -> None:
        """Make the step anew where inputs have sizes that the model does not declare.

        Raises:
            ShapeError: The model does not work at these sizes.
        """
        shapes = {name: np.shape(array) for name, array in feed.items()}
        if not takes(self._infer, shapes):
            infer = resized(self._model.module.functions[INFER], shapes)
            self._open(infer, self._bare(), self.state())
