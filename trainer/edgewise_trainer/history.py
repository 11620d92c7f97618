"""What a training has shown, epoch by epoch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One pass over the data.

    Attributes:
        number: From 1 on, earlier trainings counted.
        loss: Mean over its steps.
        seconds: Time it took.
        validation: What ``evaluate`` gave behind it; empty where nothing validates.
    """

    number: int
    loss: float
    seconds: float
    validation: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A step that was done.

    Attributes:
        epoch: Its number.
        step: Steps of the trainer so far.
        loss: Before the step.
    """

    epoch: int
    step: int
    loss: float


# Sees every step and every epoch; one that gives True ends the training.
Callback: TypeAlias = Callable[["Progress | Epoch"], "bool | None"]


def told(callbacks: Sequence[Callback], event: Progress | Epoch) -> bool:
    """Tell all, and whether one of them wants to end."""
    answers = [callback(event) for callback in callbacks]
    return any(answer is True for answer in answers)


@dataclass(frozen=True, slots=True)
class History:
    """The epochs of one call of ``fit``."""

    epochs: tuple[Epoch, ...]

    def __str__(self) -> str:
        """One line an epoch."""
        return "\n".join(_line(epoch) for epoch in self.epochs)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the losses over the epochs into a file; wants matplotlib."""
        import matplotlib as mpl  # noqa: PLC0415 - only those who draw wait for it

        mpl.use("Agg")
        from matplotlib import pyplot as plt  # noqa: PLC0415

        figure, axis = plt.subplots()
        numbers = [epoch.number for epoch in self.epochs]
        axis.plot(numbers, [epoch.loss for epoch in self.epochs], label="loss")
        known = self.epochs[0].validation if self.epochs else {}
        for name in known:
            values = [epoch.validation[name] for epoch in self.epochs]
            axis.plot(numbers, values, label=f"validation {name}")
        axis.set_xlabel("epoch")
        axis.legend()
        figure.savefig(path)
        plt.close(figure)


class EarlyStop:
    """A callback that ends a training when the validation loss stops falling.

    Args:
        patience: Epochs without a lower loss after which it ends.
        least: By how much a loss must be lower to count.
    """

    def __init__(self, patience: int = 3, least: float = 0.0) -> None:
        self._patience, self._least = patience, least
        self._best, self._waited = float("inf"), 0

    def __call__(self, event: Progress | Epoch) -> bool:
        """Whether to end."""
        if not isinstance(event, Epoch):
            return False
        loss = event.validation.get("loss", event.loss)
        if loss < self._best - self._least:
            self._best, self._waited = loss, 0
            return False
        self._waited += 1
        return self._waited >= self._patience


def _line(epoch: Epoch) -> str:
    found = (f"{name} {value:.4f}" for name, value in epoch.validation.items())
    held = f"; validation {', '.join(found)}" if epoch.validation else ""
    return f"epoch {epoch.number}: loss {epoch.loss:.4f}{held} ({epoch.seconds:.1f} s)"
