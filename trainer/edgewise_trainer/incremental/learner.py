"""The learner: one task after another, and the earlier ones stay."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import partial
from typing import Self

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import Model, want_model
from edgewise_trainer import losses
from edgewise_trainer.data import Data, Inputs
from edgewise_trainer.history import Callback
from edgewise_trainer.incremental import saving
from edgewise_trainer.incremental.border import AT_ONCE, Border
from edgewise_trainer.incremental.course import Course
from edgewise_trainer.incremental.drift import DriftDetector
from edgewise_trainer.incremental.forgetting import Forgetting
from edgewise_trainer.incremental.knowledge import ALL, Knowledge, beginning
from edgewise_trainer.incremental.memory import ReplayMemory
from edgewise_trainer.incremental.methods import (
    Method,
    Replay,
    methods,
    parsed,
    want_agreement,
)
from edgewise_trainer.incremental.report import Gate, LearnReport, diverged
from edgewise_trainer.incremental.saving import Saved
from edgewise_trainer.incremental.stream import Examples, TaskData
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import Optimizer, chosen
from edgewise_trainer.task import Trainable
from edgewise_trainer.trainer import Trainer


class IncrementalLearner:
    """Teaches a model one task after another.

    Args:
        model: What learns; stays as it is.
        method: What keeps it from forgetting: ``"none"``, ``"replay"``, ``"ewc"``,
            ``"lwf"``, some of them joined by ``+``; or ``Replay``, ``Ewc``, ``Lwf``.
        loss: As a ``Trainer`` takes it.
        optimizer: As a ``Trainer`` takes it; begins anew with every task.
        trainable: As a ``Trainer`` takes it.
        replay_bytes: Of the examples that are replayed, with their targets.
        store: A file that keeps those; they are there again for the next learner.
        keep: Inputs and targets on which the model must not get worse.
        max_drop: How much worse: of accuracy, or the part by which a loss may rise.
        cut: A tensor, or ``"last:K"``: what lies before it is never trained, and
            features there are replayed instead of inputs.
        known: Classes that the model knows already, or ``"all"``.  Those of ``keep``
            and of the store join them; the others are no answer before a task has them.
        threads: Of a step.
        seed: Of the order of examples and of what is kept of them.

    Attributes:
        drift: What ``watch`` decides by; may be replaced by one that is more strict.

    Raises:
        ConfigError: An option is none of these.
        CheckpointError: The store is damaged.
    """

    def __init__(  # noqa: PLR0913 - plain options, all but two by name
        self,
        model: Model,
        method: str | Method | tuple[Method, ...] = "replay",
        loss: str | Loss = "cross_entropy",
        optimizer: Optimizer | None = None,
        *,
        trainable: Trainable = ALL,
        replay_bytes: int = 20_000,
        store: str | os.PathLike[str] | None = None,
        keep: tuple[Inputs, Array] | None = None,
        max_drop: float = 0.02,
        cut: str | None = None,
        known: Collection[int] | str = (),
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        want_model(model)
        found, use = losses.found(loss), methods(method)
        want_agreement(use, found, trainable, store)
        self._course = Course(
            methods=use,
            loss=found,
            optimizer=chosen(optimizer),
            trainable=trainable,
            threads=threads,
            seed=seed,
        )
        begun = beginning(model, found, known, cut)
        self._border = Border(model, found, cut, threads)
        policy = (use.replay or Replay()).policy
        self._memory = ReplayMemory(replay_bytes, policy, store, seed)
        self._trainer: Trainer | None = None
        self._gate, self._forgetting = Gate(max_drop), Forgetting()
        self._kept: Examples | None = None
        if keep is not None:
            self._kept = self._border.pair(keep)
        self._keep = None if self._kept is None else self._border.task(self._kept)
        self._tasks, self.drift = 0, DriftDetector()
        kept = frozenset() if self._keep is None else self._keep.classes()
        self._now = begun.with_classes(kept | set(self._memory.classes))

    def learn(
        self,
        data: Data,
        epochs: int = 1,
        batch_size: int = 32,
        *,
        test: Data | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> LearnReport:
        """Learn one more task, if that harms nothing that must be kept.

        Args:
            data: (inputs, targets) of all examples, or batches that can be passed over
                more than once.
            epochs: Passes.
            batch_size: New examples of a step; replayed ones come beside them.
            test: Held-out examples of the task, for ``forgetting``; else its own.
            callbacks: As ``Trainer.fit`` takes them.

        Raises:
            ConfigError: There is a new class, and the head cannot grow.
            TrainabilityError: Something has no gradient.
        """
        task = self._border.task(data)
        held_out = task if test is None else self._border.task(test)
        now = self._current()
        start = now.with_classes(task.classes())
        measured = self._keep or held_out
        before = self._border.measured(now if self._keep else start, measured)
        if self._keep:
            self._gate.note(before)
        self._tasks += 1
        trainer = self._course.trainer(now, start)
        mixed = self._course.batches(now, task, batch_size, self._memory, self._tasks)
        history = trainer.fit(mixed, epochs, callbacks=callbacks)
        learned = start.with_trained(trainer.export())
        after = self._border.measured(learned, measured)
        reason = self._gate.refusal(after) if self._keep else diverged(after)
        if not reason:
            self._settle(learned, task)
            batches = held_out.batches(AT_ONCE, None)
            self._forgetting.add(batches, partial(self._border.scores, self._now))
        return LearnReport(before=before, after=after, reason=reason, history=history)

    def remember(self, data: Data) -> None:
        """Take examples of what the model knows already, as if it had learned them.

        They are replayed, and tell EWC what must stay; their classes count as seen.

        ``data`` is as ``learn`` takes it.
        """
        task = self._border.task(data)
        self._tasks += 1
        self._settle(self._current().with_classes(task.classes()), task)

    def evaluate(self, data: Data) -> dict[str, float]:
        """Mean loss over data, and accuracy among the classes seen so far."""
        return self._border.measured(self._current(), self._border.task(data))

    def forgetting(self) -> Array:
        """How good the model was on task ``j`` after task ``i``, ``[tasks, tasks]``.

        Accuracy, or the loss where there is none; measured on a sample of every task;
        NaN where a task was still to come.  Tasks that were refused do not count.
        """
        return self._forgetting.matrix()

    def export(self) -> Model:
        """The model as it is now, among the classes seen so far."""
        now = self._current()
        return now.among(now.whole)

    def watch(self, inputs: Inputs, target: Array | None = None) -> bool:
        """See a batch go by; whether the model has come to doubt what it sees.

        With targets its loss is watched, else how far the likeliest class is from
        certain.  ``drift`` decides; it begins anew with every task that is learned.

        Raises:
            ConfigError: The output is not of classes, and there are no targets.
        """
        for doubt in self._border.doubts(self._current(), inputs, target):
            self.drift.update(doubt)
        return self.drift.drifted

    @property
    def replay(self) -> ReplayMemory:
        """Examples of the past."""
        return self._memory

    @property
    def classes(self) -> tuple[int, ...]:
        """Classes seen so far."""
        return tuple(sorted(self._now.seen or ()))

    @property
    def trainer(self) -> Trainer:
        """A trainer of the model as it is now (behind the cut, if there is one).

        What it is taught stays.  It is another one after the next task.
        """
        if self._trainer is None:
            self._trainer = self._course.plain(self._now)
        return self._trainer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that ``resume`` needs: whole, or not at all.

        Examples that a store keeps stay there.

        Raises:
            CheckpointError: It cannot be written, or holds a loss or an optimizer of
                your own.
        """
        facts = {
            **self._course.facts(),
            "replay_bytes": self._memory.limit,
            "stored": self._memory.stored,
            "max_drop": self._gate.max_drop,
            "best": self._gate.best,
            "rows": self._forgetting.rows,
            "tasks": self._tasks,
        }
        replay = None if self._memory.stored else self._memory.contents()
        probes = self._forgetting.contents()
        saving.save(path, Saved(self._current(), facts, replay, probes, self._kept))

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        store: str | os.PathLike[str] | None = None,
        threads: int | None = None,
    ) -> Self:
        """The learner of a file; it goes on bit for bit.

        Args:
            path: What ``save`` wrote.
            store: The file that keeps its examples, if one did.
            threads: Of a step.

        Raises:
            CheckpointError: The file is damaged, or is no learner.
            ConfigError: A store is missing, or is one too many.
        """
        known, facts, replay, probes, keep = saving.load(path)
        if facts["stored"] != (store is not None):
            want = "with its store" if facts["stored"] else "without a store"
            raise ConfigError(f"{path}: the learner was saved {want}; resume it so")
        learner = cls(
            known.whole,
            parsed(facts["methods"]),
            facts["loss"],
            facts["optimizer"],
            trainable=facts["trainable"],
            replay_bytes=facts["replay_bytes"],
            store=store,
            keep=keep,
            max_drop=facts["max_drop"],
            cut=known.cut,
            known=known.seen or (),
            threads=threads,
            seed=facts["seed"],
        )
        if replay is not None:
            learner._memory.restore(replay)
        learner._forgetting = Forgetting.restored(probes, facts["rows"])
        learner._now, learner._tasks = known, facts["tasks"]
        learner._gate.best = facts["best"]
        return learner

    def close(self) -> None:
        """Let the store go."""
        self._memory.close()

    def _current(self) -> Knowledge:
        """What is known now, by way of ``trainer``, too."""
        if self._trainer is not None:
            self._now = self._now.with_trained(self._trainer.export())
        return self._now

    def _settle(self, learned: Knowledge, task: TaskData) -> None:
        """Know something from now on, and keep what methods want of its examples."""
        past = self._course.past(learned, task, self._tasks)
        if self._course.methods.replay is not None:
            for inputs, target in task.batches(AT_ONCE, None):
                self._memory.add(inputs, target)
        self._now, self._trainer = learned._replace(past=past), None
        self.drift.reset()
