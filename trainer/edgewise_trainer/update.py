"""What optimizers are made of: the clock of a step, slots, and steps of arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, constant
from edgewise.ops import Add, Cast, Mul, Pow, Sub
from edgewise_trainer.schedules import Rate, want_rate
from edgewise_trainer.terms import scalar
from edgewise_trainer.wanted import want_from_0, want_part

Slots = Mapping[str, Value]


class Clock(NamedTuple):
    """What a step knows of time.

    Attributes:
        rate: Learning rate of this step, f32.
        step: Its number, from 1 on, f64.
    """

    rate: Value
    step: Value


class Optimizer(Protocol):
    """How parameters follow their gradients."""

    @property
    def lr(self) -> Rate:
        """Learning rate, or a schedule of it."""

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of what it remembers of each parameter."""

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """The parameter and its slots after a step."""


def since_start(clock: Clock, beta: float) -> Value:
    """``1 - beta ** step``, in double precision: close to 1 much would be lost."""
    power = Pow()(constant(np.asarray(beta)), clock.step)
    return Sub()(constant(np.asarray(1.0)), power)


def single(value: Value, like: Value) -> Value:
    """A number of the element type of ``like``."""
    if value.type.dtype is like.type.dtype:
        return value
    return Cast(like.type.dtype.value)(value)


def times(value: Value, factor: float) -> Value:
    """A value times a number."""
    return Mul()(value, scalar(factor, value))


def followed(mean: Value, value: Value, kept: float) -> Value:
    """A running mean after one more value."""
    return Add()(times(mean, kept), times(value, 1.0 - kept))


def decayed(parameter: Value, grad: Value, decay: float) -> Value:
    """A gradient with the decay of its parameter."""
    return Add()(grad, times(parameter, decay)) if decay else grad


def moved(parameter: Value, step: Value, rate: Value) -> Value:
    """A parameter after a step."""
    return Sub()(parameter, Mul()(step, rate))


def want_rates(rate: object, decay: object) -> None:
    """Raise ``ConfigError`` unless both make sense."""
    want_rate("lr", rate)
    want_from_0("weight_decay", decay)


def want_betas(betas: object) -> None:
    """Raise ``ConfigError`` unless they are two parts of what goes on."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ConfigError(f"betas={betas!r}: want two numbers")
    for beta in betas:
        want_part("betas", beta)


def want_optimizer(value: object) -> None:
    """Raise ``ConfigError`` unless it is what an optimizer is."""
    known = all(hasattr(value, name) for name in ("lr", "slots", "update"))
    if isinstance(value, type) or not known:
        raise ConfigError(
            f"optimizer={value!r}: want one of edgewise_trainer.optimizers, like "
            "AdamW(1e-3)"
        )
