"""The way of a training through its data: passes, batches, the order of examples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise_trainer.data import Data, Inputs, batches
from edgewise_trainer.history import Callback, Epoch, History, Progress, told
from edgewise_trainer.wanted import want_kinds


def want_callbacks(callbacks: object) -> None:
    """Raise ``ConfigError`` unless all can be called."""
    want_kinds("callbacks", callbacks, object, "several that can be called")
    if not all(map(callable, cast("Sequence[object]", callbacks))):
        raise ConfigError(f"callbacks={callbacks!r}: want several that can be called")


def want_passes(epochs: object, data: Data, validation: Data | None) -> None:
    """Raise ``ConfigError`` where data cannot be passed over so many times."""
    if not isinstance(epochs, int | np.integer) or epochs < 0:
        got = repr(epochs) if np.isscalar(epochs) else type(epochs).__name__
        raise ConfigError(
            f"epochs: got {got}; want a whole number from 0 on (inputs and targets are "
            "one argument: (x, y))"
        )
    for name, each in (("data", data), ("validation", validation)):
        if isinstance(each, Iterator) and epochs > 1:
            raise ConfigError(
                f"{name}: got a {type(each).__name__}, which ends after one pass of "
                f"{epochs}; want (inputs, targets), or batches that can be passed over "
                "again, as a list"
            )


class Course:
    """Where a training is.

    Attributes:
        seed: Decides the order of examples.
        epoch: Passes done.
        batch: Batches done of the next one.
    """

    def __init__(self, seed: int, epoch: int = 0, batch: int = 0) -> None:
        self.seed, self.epoch, self.batch = seed, epoch, batch

    def run(
        self,
        data: Data,
        size: int,
        step: Callable[[Inputs, Array], float],
        steps: int,
        callbacks: Sequence[Callback],
    ) -> tuple[float, bool]:
        """The rest of a pass.

        Args:
            data: What is passed over.
            size: Examples of a batch.
            step: Does a step and gives its loss.
            steps: Those done before.
            callbacks: See every step.

        Returns:
            The mean loss, and whether a callback ended the pass.
        """
        total, count = 0.0, 0
        order = np.random.default_rng((self.seed, self.epoch + 1))
        for inputs, target in batches(data, size, order, self.batch):
            loss = step(inputs, target)
            self.batch += 1
            total, count = total + loss, count + 1
            event = Progress(epoch=self.epoch + 1, step=steps + count, loss=loss)
            if told(callbacks, event):
                return total / count, True
        self.epoch, self.batch = self.epoch + 1, 0
        return total / count if count else float("nan"), False

    def passes(
        self,
        epochs: int,
        run: Callable[[], tuple[float, bool]],
        validate: Callable[[], dict[str, float]],
        callbacks: Sequence[Callback],
    ) -> History:
        """Some passes, each evaluated behind it; fewer if a callback ends them.

        Args:
            epochs: Passes.
            run: Does the rest of a pass.
            validate: Evaluates.
            callbacks: See every pass.
        """
        want_callbacks(callbacks)
        done: list[Epoch] = []
        for _ in range(epochs):
            start, number = time.monotonic(), self.epoch + 1
            loss, stopped = run()
            found = validate()
            seconds = time.monotonic() - start
            epoch = Epoch(number=number, loss=loss, seconds=seconds, validation=found)
            done.append(epoch)
            if told(callbacks, epoch) or stopped:
                break
        return History(tuple(done))
