"""Learning rates over the steps of a training; definitions are PyTorch's.

A schedule is a function of the number of steps done before, from 0 on.  Give one in
place of a number: ``SGD(schedules.Cosine(0.1, steps=1000))``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from edgewise_trainer.wanted import want_count, want_from_0, want_number, want_positive


class Schedule(Protocol):
    """A learning rate that changes."""

    def __call__(self, step: int) -> float:
        """The rate after ``step`` steps."""


Rate: TypeAlias = "float | Schedule"


def rate_at(rate: Rate, step: int) -> float:
    """The learning rate after ``step`` steps."""
    if not callable(rate):
        return float(rate)
    found = rate(step)
    want_from_0(f"lr after {step} steps", found)
    return float(found)


def want_rate(name: str, rate: object) -> None:
    """Raise ``ConfigError`` unless it is a rate, or what tells one."""
    if isinstance(rate, type) or not callable(rate):
        want_from_0(name, rate)


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same.

    Attributes:
        rate: The learning rate.
    """

    rate: float

    def __post_init__(self) -> None:
        want_from_0("rate", self.rate)

    def __call__(self, step: int) -> float:
        """The rate."""
        del step
        return self.rate


@dataclass(frozen=True, slots=True)
class Steps:
    """Times ``gamma`` after every ``size`` steps (``StepLR``).

    Attributes:
        rate: The first learning rate.
        size: Steps between changes.
        gamma: Factor of a change.
    """

    rate: float
    size: int
    gamma: float = 0.1

    def __post_init__(self) -> None:
        want_from_0("rate", self.rate)
        want_count("size", self.size)
        want_from_0("gamma", self.gamma)

    def __call__(self, step: int) -> float:
        """``rate * gamma ** (step // size)``."""
        return self.rate * self.gamma ** (step // self.size)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Half a wave from ``rate`` down to ``floor`` (``CosineAnnealingLR``), then floor.

    Attributes:
        rate: The first learning rate.
        steps: Length of the way down.
        floor: The last learning rate.
    """

    rate: float
    steps: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        want_from_0("rate", self.rate)
        want_count("steps", self.steps)
        want_from_0("floor", self.floor)

    def __call__(self, step: int) -> float:
        """The wave at ``step / steps``."""
        part = min(step / self.steps, 1.0)
        wave = (1 + math.cos(math.pi * part)) / 2
        return self.floor + (self.rate - self.floor) * wave


@dataclass(frozen=True, slots=True)
class WarmUp:
    """A straight line up to the first rate of another schedule, which then begins.

    Attributes:
        then: What follows.
        steps: Length of the way up.
        start: Part of the rate that it begins with (``LinearLR``).
    """

    then: Rate
    steps: int
    start: float = 0.0

    def __post_init__(self) -> None:
        want_rate("then", self.then)
        want_from_0("start", self.start)
        want_count("steps", self.steps)

    def __call__(self, step: int) -> float:
        """The line, or what follows."""
        if step >= self.steps:
            return rate_at(self.then, step - self.steps)
        part = self.start + (1.0 - self.start) * step / self.steps
        return part * rate_at(self.then, 0)


@dataclass(frozen=True, slots=True)
class OneCycle:
    """Up to ``rate`` and down to almost nothing, both as cosines (``OneCycleLR``).

    Attributes:
        rate: The highest learning rate.
        steps: Length of the whole.
        up: Part of it that goes up.
        start_divisor: The first rate is the highest by this.
        end_divisor: The last rate is the first by this.
    """

    rate: float
    steps: int
    up: float = 0.3
    start_divisor: float = 25.0
    end_divisor: float = 1e4

    def __post_init__(self) -> None:
        want_from_0("rate", self.rate)
        want_count("steps", self.steps)
        want = "a part between 0 and 1"
        want_number("up", self.up, want, lambda part: 0.0 < part < 1.0)
        want_positive("start_divisor", self.start_divisor)
        want_positive("end_divisor", self.end_divisor)

    def __call__(self, step: int) -> float:
        """One of the two waves."""
        first = self.rate / self.start_divisor
        peak = self.up * self.steps - 1
        last = self.steps - 1
        if step <= peak:
            return _wave(first, self.rate, step / peak if peak else 1.0)
        part = min((step - peak) / max(last - peak, 1), 1.0)
        return _wave(self.rate, first / self.end_divisor, part)


def _wave(start: float, end: float, part: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2
