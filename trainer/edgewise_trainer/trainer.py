"""The trainer: a model that learns, in the process that runs it."""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.quant.config import QuantizeConfig
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.memory import MemoryReport
from edgewise_trainer import checkpoint
from edgewise_trainer.alone import alone
from edgewise_trainer.course import Course, want_passes
from edgewise_trainer.data import Data, Inputs, batch_of, examples, named, pairs
from edgewise_trainer.engine import engine_for
from edgewise_trainer.evaluation import evaluated
from edgewise_trainer.explain import described, explained
from edgewise_trainer.held import begun_anew, holding, learned, quantized
from edgewise_trainer.history import Callback, History
from edgewise_trainer.losses import Loss, want_classes
from edgewise_trainer.names import EVALUATE, INFER
from edgewise_trainer.optimizers import Optimizer
from edgewise_trainer.report import TrainabilityReport
from edgewise_trainer.resized import resized, takes
from edgewise_trainer.schedules import rate_at
from edgewise_trainer.start import Start, save, start_of, with_step
from edgewise_trainer.task import Trainable, made
from edgewise_trainer.values import as_now, want_states

logger = logging.getLogger(__name__)


class Trainer:
    """Trains a model on batches.

    A checkpoint, or what ``save`` wrote, goes on where that trainer was, unless a loss,
    an optimizer or what is trainable is given.

    Args:
        model: What to train; stays as it is.
        loss: Name of a loss, or one of ``edgewise_trainer.losses``, or a callable that
            makes a scalar of output and target; cross entropy if there is none.
        optimizer: How parameters follow their gradients; plain descent at 0.01 if
            there is none.
        trainable: Which parameters: see ``edgewise_trainer.selection.selected``; all
            if nothing is said.
        batch_size: What ``fit`` and ``evaluate`` cut data into, if they are not told
            (32 if nothing is); and what ``report`` is for (1 if nothing is).
        threads: Threads of a step; None: as a session has them.
        memory_budget: By how much the process may grow, with the model: bytes, or a
            text like ``"64MB"``; ``report`` tells what is done to keep to it.
        quantize: How the model is quantised that ``export`` gives: over bytes, or with
            weights alone of int8 or int4. Steps of training then round as its kernels
            do; ranges of images are found by training, and so is what numbers are
            rounded to, with ``learn_steps``.
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

    def __init__(  # noqa: PLR0913 - what there is to choose
        self,
        model: Model,
        loss: str | Loss | None = None,
        optimizer: Optimizer | None = None,
        trainable: Trainable | None = None,
        *,
        batch_size: int | None = None,
        memory_budget: int | str | None = None,
        quantize: QuantizeConfig | None = None,
        threads: int | None = None,
        seed: int = 0,
        state: Mapping[str, Array] | None = None,
    ) -> None:
        start = start_of(model, loss, optimizer, trainable, seed, quantize)
        self._alone = threading.RLock()
        self._setting = start.setting.with_room(batch_size, memory_budget)
        self._batch = self._setting.batch_size or 1
        self._model, self._score = start.model, start.score
        self._config = SessionConfig(threads=threads)
        self._infer = start.model.module.functions[INFER]
        # To cut a step to a budget takes its gradients, which a file does not name.
        known = start.task if self._setting.memory_budget is None else None
        self._task = known or made(start.model.module, self._setting)
        self.trained = self._task.trained
        if names := ", ".join(self._task.step.unreached):
            logger.warning("the loss does not depend on %s: never trained", names)
        want_states(self._task.step.states, start.state, all_of=start.goes_on)
        self._open(start.model, {**start.state, **(state or {})})
        self._inputs = tuple(info.name for info in start.model.inputs)
        self.steps = start.steps
        self._course = Course(start.setting.seed, start.epoch, start.batch)

    @property
    def epochs(self) -> int:
        """Passes over the data done."""
        return self._course.epoch

    @property
    def memory(self) -> MemoryReport:
        """What a step takes, of the largest batch so far."""
        return self._engine.memory

    @functools.cached_property
    def report(self) -> TrainabilityReport:
        """What is trained, and what a step takes; none is run."""
        module = self._model.module.with_function(INFER, self._infer)
        return described(module, self._setting, self._batch, self._engine)

    explain = staticmethod(explained)

    @alone
    def step(self, inputs: Inputs, target: Array) -> float:
        """One step of the optimizer.

        Args:
            inputs: An array for every input of the model, by name; or the array of the
                only one.
            target: What the loss holds the output against.

        Returns:
            The loss before the step.
        """
        rate = rate_at(self._setting.optimizer.lr, self.steps)
        feed = named(inputs, self._inputs)
        want_classes(self._setting.loss, target, self._infer.outputs[0].type)
        self._resize(feed)
        self._make_room(examples(target))
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
        want_passes(epochs, data, validation)
        size = batch_of(self._setting.size(batch_size))
        course = self._course
        return course.passes(
            epochs,
            lambda: course.run(data, size, self.step, self.steps, callbacks),
            lambda: {} if validation is None else self.evaluate(validation),
            callbacks,
        )

    def evaluate(
        self, data: Data, batch_size: int | None = None, *, averaged: bool = False
    ) -> dict[str, float]:
        """Mean loss over data, and accuracy where targets are classes.

        The model runs as ``export`` gives it: by its running statistics.
        """
        size = batch_of(self._setting.size(batch_size))
        model = self.export(averaged=averaged)
        if self._score is not None:
            model = Model(model.module.with_function(EVALUATE, self._score))
        cut = pairs(data, size, self._inputs)
        return evaluated(model, self._setting.loss, cut, self._config)

    def parameters(self) -> dict[str, Array]:
        """All parameters under their names and in the shapes of the source model."""
        return self._real(averaged=False).parameters()

    @alone
    def set_parameters(self, values: Mapping[str, Array]) -> None:
        """Give parameters new values; what the optimizer remembers stays.

        Raises:
            ConfigError: There is no such parameter.
            ShapeError: An array has another shape.
        """
        module, begun = holding(self._bare().module, self._task, values)
        self._model = Model(module)
        self._open(self._model, self.state() | begun)

    @alone
    def restart(
        self,
        parameters: Mapping[str, Array],
        state: Mapping[str, Array] | None = None,
    ) -> None:
        """Begin anew, at step 0, with other parameters and no memory but ``state``.

        As ``set_parameters``, but so cheap that one trainer can serve many devices.
        """
        module, begun = holding(self._bare().module, self._task, parameters)
        module = begun_anew(module, self._setting.quantize)
        self._model, begun = Model(module), begun | dict(state or {})
        if not self._engine.restart(module, self._task.step, begun):
            self._open(self._model, begun)
        self.steps, self._course = 0, Course(self._setting.seed)

    @alone
    def export(self, *, averaged: bool = False) -> Model:
        """The model as it is now, to run or to save; adapters are merged.

        Trained for small numbers, it is quantised, by what training found.

        Args:
            averaged: Whether parameters are their averages (``optimizers.Averaged``).
        """
        return quantized(self._real(averaged=averaged), self._setting.quantize)

    def _real(self, *, averaged: bool) -> Model:
        """The model as it is now, in real numbers."""
        module, live = self._model.module, self._engine.variables
        return learned(module, self._task, live, averaged=averaged and self.steps > 0)

    def _bare(self) -> Model:
        """The model as it is now, without adapters."""
        live, changed = self._engine.variables, self._task.step.graph.updates
        return Model(as_now(self._model.module, live, changed), self._model.path)

    @alone
    def state(self) -> dict[str, Array]:
        """What is learned or remembered beside the parameters, as it is stored."""
        live = self._engine.variables
        return {info.key: live[info.key].copy() for info in self._task.step.states}

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write all that ``resume`` needs: whole, or not at all.

        Raises:
            CheckpointError: It cannot be written, or holds a loss or an optimizer of
                your own.
        """
        save(path, self._now())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint with the step itself: whole, or not at all.

        ``Trainer(edgewise.load(path))`` goes on bit for bit, making gradients anew only
        for a budget of memory; ``Session(path)`` runs it.  The loss may be your own.

        Raises:
            CheckpointError: It cannot be written, or holds an optimizer of your own.
        """
        with self._alone:
            start = with_step(self._now(), self._task, self._infer, self._score)
        save(path, start)

    @alone
    def _now(self) -> Start:
        """What another trainer needs to go on."""
        place = (self.steps, self._course.epoch, self._course.batch)
        return Start(self._bare(), self._setting, None, None, self.state(), *place)

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *, threads: int | None = None
    ) -> Self:
        """The trainer of a checkpoint; it goes on bit for bit.

        Raises:
            CheckpointError: The file is damaged, or is no checkpoint.
        """
        return cls(checkpoint.opened(path), threads=threads)

    def _open(self, model: Model, states: Mapping[str, Array]) -> None:
        step, config, setting = self._task.step, self._config, self._setting
        want_states(step.states, states, all_of=False)
        self._engine = engine_for(model, step, states, config, setting, self._batch)
        if setting.memory_budget is not None:
            self._setting = setting._replace(way=self._engine.way)

    def _make_room(self, batch: int) -> None:
        """Choose anew how to keep to the budget if a batch is larger than planned."""
        whole = self._setting.way is not None and self._setting.way.examples is None
        if whole and batch > self._batch:
            self._batch, self._setting = batch, self._setting._replace(way=None)
            self._open(self._bare(), self.state())

    def _resize(self, feed: Mapping[str, Array]) -> None:
        """Make the step anew where inputs have sizes that it was not made for."""
        shapes = {name: np.shape(array) for name, array in feed.items()}
        if not takes(self._task.step.graph, shapes):
            infer = resized(self._model.module.functions[INFER], shapes)
            model, states = self._bare(), self.state()
            module = model.module.with_function(INFER, infer)
            self._infer, self._task = infer, made(module, self._setting)
            self._setting = self._setting._replace(way=None)  # other sizes, other room
            self._open(model, states)
