"""Learning rates over the steps of a training; definitions are PyTorch's.

A schedule is a function of the number of steps done before, from 0 on.  Give one in
place of a number: ``SGD(schedules.Cosine(0.1, steps=1000))``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from edgewise.errors import ConfigError


class Schedule(Protocol):
    """A learning rate that changes."""

    def __call__(self, step: int) -> float:
        """The rate after ``step`` steps."""


Rate: TypeAlias = "float | Schedule"


def rate_at(rate: Rate, step: int) -> float:
    """The learning rate after ``step`` steps."""
    return float(rate(step)) if callable(rate) else float(rate)


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same.

    Attributes:
        rate: The learning rate.
    """

    rate: float

    def __post_init__(self) -> None:
        _want_rate(self.rate)

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
        _want_rate(self.rate)
        _want_steps("size", self.size)

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
        _want_rate(self.rate)
        _want_steps("steps", self.steps)

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
        _want_steps("steps", self.steps)

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
        _want_rate(self.rate)
        _want_steps("steps", self.steps)
        if not 0.0 < self.up < 1.0:
            raise ConfigError(f"up={self.up!r}: want a part between 0 and 1")

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


def _want_rate(rate: float) -> None:
    if not rate >= 0.0:
        raise ConfigError(f"rate={rate!r}: want a number from 0 on")


def _want_steps(name: str, steps: int) -> None:
    if not isinstance(steps, int) or steps < 1:
        raise ConfigError(f"{name}={steps!r}: want a whole number from 1 on")
