"""Optimizers: a new value of a parameter from its gradient, in graph terms.

Definitions and defaults are PyTorch's, so that numbers can be compared.  What an
optimizer remembers of a parameter lies in *slots*, variables of the parameter's type
that begin as zeros.  The rate of a step and its number are inputs of the step, so that
a schedule needs no other graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, constant
from edgewise.ops import Add, Cast, Div, Mul, Pow, Sign, Sqrt, Sub
from edgewise_trainer.autodiff.shapes import scalar
from edgewise_trainer.schedules import Rate

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


@dataclass(frozen=True, slots=True)
class SGD:
    """Stochastic gradient descent.

    Attributes:
        lr: Learning rate, or a schedule of it.
        momentum: Part of the last step that goes on.
        nesterov: Whether the gradient is that ahead of the momentum.
        weight_decay: Times the parameter, added to its gradient.
    """

    lr: Rate
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)
        _check_part("momentum", self.momentum)
        if self.nesterov and not self.momentum:
            raise ConfigError("nesterov: want a momentum above 0")

    @property
    def slots(self) -> tuple[str, ...]:
        """The velocity, if there is momentum."""
        return ("momentum",) if self.momentum else ()

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``v = momentum v + g; p -= rate v``."""
        grad = _decayed(parameter, grad, self.weight_decay)
        if not self.momentum:
            return _moved(parameter, grad, clock.rate), {}
        velocity = Add()(_times(slots["momentum"], self.momentum), grad)
        step = velocity
        if self.nesterov:
            step = Add()(grad, _times(velocity, self.momentum))
        return _moved(parameter, step, clock.rate), {"momentum": velocity}


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam (Kingma and Ba, 2015); the decay is added to the gradient.

    Attributes:
        lr: Learning rate, or a schedule of it.
        betas: How much of the running means of gradient and square stays at each step.
        eps: Added to the root of the square.
        weight_decay: Times the parameter, added to its gradient.
    """

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)
        _check_betas(self.betas)

    @property
    def slots(self) -> tuple[str, ...]:
        """Running means of the gradient and of its square."""
        return ("mean", "square")

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate m / (sqrt(v) + eps)``, both means freed of their start at 0."""
        grad = _decayed(parameter, grad, self.weight_decay)
        return adam_step(parameter, grad, slots, clock, self.betas, self.eps)


@dataclass(frozen=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Attributes:
        lr: Learning rate, or a schedule of it.
        betas: How much of the running means of gradient and square stays at each step.
        eps: Added to the root of the square.
        weight_decay: Part of the parameter that a step of rate 1 takes away.
    """

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)
        _check_betas(self.betas)

    @property
    def slots(self) -> tuple[str, ...]:
        """Running means of the gradient and of its square."""
        return ("mean", "square")

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate decay p``, then Adam."""
        if self.weight_decay:
            shrink = _times(clock.rate, self.weight_decay)
            kept = Sub()(scalar(1.0, shrink), shrink)
            parameter = Mul()(parameter, kept)
        return adam_step(parameter, grad, slots, clock, self.betas, self.eps)


@dataclass(frozen=True, slots=True)
class RMSprop:
    """Steps divided by the root of the running mean square (Tieleman, Hinton, 2012).

    Attributes:
        lr: Learning rate, or a schedule of it.
        alpha: How much of the running mean stays at each step.
        eps: Added to the root.
        weight_decay: Times the parameter, added to its gradient.
        momentum: Part of the last step that goes on.
    """

    lr: Rate = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)
        _check_part("alpha", self.alpha)
        _check_part("momentum", self.momentum)

    @property
    def slots(self) -> tuple[str, ...]:
        """The running mean square; the velocity, if there is momentum."""
        return ("square", "momentum") if self.momentum else ("square",)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate g / (sqrt(s) + eps)``."""
        grad = _decayed(parameter, grad, self.weight_decay)
        square = _followed(slots["square"], Mul()(grad, grad), self.alpha)
        step = Div()(grad, Add()(Sqrt()(square), scalar(self.eps, grad)))
        found = {"square": square}
        if self.momentum:
            step = Add()(_times(slots["momentum"], self.momentum), step)
            found["momentum"] = step
        return _moved(parameter, step, clock.rate), found


@dataclass(frozen=True, slots=True)
class Adagrad:
    """Steps divided by the root of the sum of squares (Duchi et al., 2011).

    Attributes:
        lr: Learning rate, or a schedule of it.
        eps: Added to the root.
        weight_decay: Times the parameter, added to its gradient.
    """

    lr: Rate = 1e-2
    eps: float = 1e-10
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)

    @property
    def slots(self) -> tuple[str, ...]:
        """The sum of squares."""
        return ("square",)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``s += g ** 2; p -= rate g / (sqrt(s) + eps)``."""
        grad = _decayed(parameter, grad, self.weight_decay)
        square = Add()(slots["square"], Mul()(grad, grad))
        step = Div()(grad, Add()(Sqrt()(square), scalar(self.eps, grad)))
        return _moved(parameter, step, clock.rate), {"square": square}


@dataclass(frozen=True, slots=True)
class Lion:
    """Steps of one size, by the sign of a mean (Chen et al., 2023).

    Attributes:
        lr: Learning rate, or a schedule of it.
        betas: How much of the mean counts in a step, and how much of it stays.
        weight_decay: Part of the parameter that a step of rate 1 takes away.
    """

    lr: Rate = 1e-4
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)
        _check_betas(self.betas)

    @property
    def slots(self) -> tuple[str, ...]:
        """The running mean of the gradient."""
        return ("mean",)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate (sign(b1 m + (1 - b1) g) + decay p)``."""
        first, second = self.betas
        step = Sign()(_followed(slots["mean"], grad, first))
        step = _decayed(parameter, step, self.weight_decay)
        mean = _followed(slots["mean"], grad, second)
        return _moved(parameter, step, clock.rate), {"mean": mean}


def adam_step(
    parameter: Value,
    grad: Value,
    slots: Slots,
    clock: Clock,
    betas: tuple[float, float],
    eps: float,
) -> tuple[Value, dict[str, Value]]:
    """Adam without decay, in PyTorch's order of operations."""
    mean = _followed(slots["mean"], grad, betas[0])
    square = _followed(slots["square"], Mul()(grad, grad), betas[1])
    rate = Div()(Cast("f64")(clock.rate), _since_start(clock, betas[0]))
    root = Sqrt()(_since_start(clock, betas[1]))
    below = Div()(Sqrt()(square), _single(root, parameter))
    step = Div()(mean, Add()(below, scalar(eps, below)))
    moved = _moved(parameter, step, _single(rate, parameter))
    return moved, {"mean": mean, "square": square}


def _since_start(clock: Clock, beta: float) -> Value:
    """``1 - beta ** step``, in double precision: close to 1 much would be lost."""
    power = Pow()(constant(np.asarray(beta)), clock.step)
    return Sub()(constant(np.asarray(1.0)), power)


def _single(value: Value, like: Value) -> Value:
    return Cast(like.type.dtype.value)(value)


def _times(value: Value, factor: float) -> Value:
    return Mul()(value, scalar(factor, value))


def _followed(mean: Value, value: Value, kept: float) -> Value:
    return Add()(_times(mean, kept), _times(value, 1.0 - kept))


def _decayed(parameter: Value, grad: Value, decay: float) -> Value:
    return Add()(grad, _times(parameter, decay)) if decay else grad


def _moved(parameter: Value, step: Value, rate: Value) -> Value:
    return Sub()(parameter, Mul()(step, rate))


def _check(rate: Rate, decay: float) -> None:
    if not callable(rate) and not rate >= 0.0:
        raise ConfigError(f"lr={rate!r}: want a number from 0 on")
    if not decay >= 0.0:
        raise ConfigError(f"weight_decay={decay!r}: want a number from 0 on")


def _check_part(name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise ConfigError(f"{name}={value!r}: want a number from 0 to below 1")


def _check_betas(betas: tuple[float, float]) -> None:
    if len(betas) != 2:
        raise ConfigError(f"betas={betas!r}: want two numbers")
    for beta in betas:
        _check_part("betas", beta)
