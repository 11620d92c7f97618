"""How tasks are taught: with which trainer, on which batches, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_trainer.incremental.ewc import Anchored, Past, importances
from edgewise_trainer.incremental.knowledge import Knowledge
from edgewise_trainer.incremental.lwf import Recorder, Remembering
from edgewise_trainer.incremental.memory import ReplayMemory
from edgewise_trainer.incremental.methods import Methods
from edgewise_trainer.incremental.stream import Mixed, TaskData
from edgewise_trainer.losses import Loss
from edgewise_trainer.task import Trainable
from edgewise_trainer.trainer import Trainer
from edgewise_trainer.update import Optimizer, want_optimizer
from edgewise_trainer.wanted import want_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is the same for all tasks.

    Attributes:
        methods: What keeps from forgetting.
        loss: Of the targets.
        optimizer: Begins anew with every task.
        trainable: Which parameters.
        threads: Of a step.
        seed: Of order and choice.
    """

    methods: Methods
    loss: Loss
    optimizer: Optimizer
    trainable: Trainable
    threads: int | None
    seed: int

    def __post_init__(self) -> None:
        want_count("seed", self.seed, 0)
        want_optimizer(self.optimizer)

    def facts(self) -> dict[str, Any]:
        """All but the threads, for a file."""
        return {
            "methods": self.methods.described(),
            "loss": self.loss,
            "optimizer": self.optimizer,
            "trainable": self.trainable,
            "seed": self.seed,
        }

    def plain(self, known: Knowledge) -> Trainer:
        """A trainer that nothing holds back."""
        return self._trainer(known.among_seen, self.loss, self.optimizer, {})

    def trainer(self, before: Knowledge, start: Knowledge) -> Trainer:
        """The trainer of a task.

        Args:
            before: What was known before it.
            start: The same with the classes of the task.
        """
        loss, optimizer = self.loss, self.optimizer
        ewc, lwf = self.methods.ewc, self.methods.lwf
        if lwf is not None and before.seen:
            loss = Remembering(loss, tuple(sorted(before.seen)), lwf)
        if ewc is not None and start.past.anchors:
            optimizer = Anchored(optimizer, ewc.strength)
        model = start.among_seen
        return self._trainer(model, loss, optimizer, start.past.state(model))

    def batches(
        self,
        before: Knowledge,
        task: TaskData,
        size: int,
        memory: ReplayMemory,
        number: int,
    ) -> Mixed:
        """The batches of a task, with the past as methods want it.

        Args:
            before: What was known before it.
            task: The task.
            size: New examples of a batch.
            memory: Examples of the past.
            number: Of the task.
        """
        want_count("batch_size", size)
        replay, record = self.methods.replay, None
        if self.methods.lwf is not None and before.seen:
            record = Recorder(before.learning, before.seen, self.threads)
        old = None if replay is None else memory
        kinds = len(memory.classes), len(task.classes())
        share = 1.0 if replay is None else replay.shares(*kinds)
        return Mixed(task, size, old, share, record, (self.seed, number))

    def past(self, learned: Knowledge, task: TaskData, number: int) -> Past:
        """What must stay of the parameters after task ``number``."""
        ewc = self.methods.ewc
        if ewc is None:
            return learned.past
        rng = np.random.default_rng((self.seed, number, 0))
        examples = task.singles(ewc.examples, rng)
        model, threads = learned.among_seen, self.threads
        found = importances(model, self.loss, self.trainable, examples, rng, threads)
        return learned.past.after(learned.learning, found)

    def _trainer(
        self, model: Model, loss: Loss, how: Optimizer, state: Mapping[str, Array]
    ) -> Trainer:
        trainable, threads = self.trainable, self.threads
        return Trainer(
            model, loss, how, trainable, threads=threads, seed=self.seed, state=state
        )
