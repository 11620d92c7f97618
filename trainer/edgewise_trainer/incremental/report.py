"""What became of a task, and whether what must be kept was kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgewise_trainer.history import History
from edgewise_trainer.wanted import want_from_0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnReport:
    """What became of one call of ``learn``.

    Attributes:
        before: What ``evaluate`` gave before, on the keep-set; on the task where there
            is none.
        after: The same of what was learned, also where it was refused.
        reason: Why it was refused; empty where it was not.
        history: The passes over the data.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    reason: str
    history: History = field(repr=False)

    @property
    def accepted(self) -> bool:
        """Whether the model is another one now.

        Else it is as before, to the bit, and so is the memory.
        """
        return not self.reason

    def __str__(self) -> str:
        """What became of it, in a line."""
        name = "accuracy" if "accuracy" in self.after else "loss"
        told = f"{name} {self.before[name]:.4f} before, {self.after[name]:.4f} after"
        return f"refused: {self.reason}" if self.reason else f"learned: {told}"


class Gate:
    """Refuses what gets worse by too much than the best so far.

    Args:
        max_drop: Of accuracy; where there is none, the part by which the loss may rise.

    Attributes:
        max_drop: That.
        best: Accuracy or loss of the best so far; None before the first.
    """

    def __init__(self, max_drop: float) -> None:
        want_from_0("max_drop", max_drop)
        self.max_drop = max_drop
        self.best: float | None = None

    def note(self, found: Mapping[str, float]) -> None:
        """Remember a model that is in use."""
        best, score = self.best, _score(found)
        self.best = score if best is None else max(best, score)

    def refusal(self, found: Mapping[str, float]) -> str:
        """Why a model must not be used; empty if it may."""
        score, best = _score(found), self.best
        if best is None or diverged(found):
            return diverged(found)
        if "accuracy" in found and best - score > self.max_drop:
            return (
                f"accuracy on the keep-set fell from {best:.4f} to {score:.4f}, by "
                f"more than {self.max_drop}"
            )
        if "accuracy" not in found and best - score > self.max_drop * abs(best):
            return (
                f"loss on the keep-set rose from {-best:.4g} to {-score:.4g}, by more "
                f"than {self.max_drop:.0%}"
            )
        return ""


def diverged(found: Mapping[str, float]) -> str:
    """Why a model must not be used at all; empty if it may."""
    if math.isfinite(found["loss"]):
        return ""
    return f"the loss is {found['loss']}: the training has diverged"


def _score(found: Mapping[str, float]) -> float:
    """Higher is better."""
    return found.get("accuracy", -found["loss"])
