"""Optimizers: a new value of a parameter from its gradient, in graph terms.

Definitions and defaults are PyTorch's where it has them, so that numbers can be
compared.  What an
optimizer remembers of a parameter lies in *slots*, variables of the parameter's type
that begin as zeros.  The rate of a step and its number are inputs of the step, so that
a schedule needs no other graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value
from edgewise.ops import (
    AdamUpdate,
    Add,
    Cast,
    Div,
    Mul,
    SgdUpdate,
    Sign,
    Sqrt,
    Sub,
)
from edgewise_trainer.around import Averaged, Clipped, Group, Grouped
from edgewise_trainer.schedules import Rate
from edgewise_trainer.terms import scalar
from edgewise_trainer.update import (
    Clock,
    Optimizer,
    Slots,
    decayed,
    followed,
    moved,
    since_start,
    single,
    times,
    want_betas,
    want_rates,
)
from edgewise_trainer.wanted import want_from_0, want_part

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Averaged",
    "Clipped",
    "Group",
    "Grouped",
    "Lion",
    "Optimizer",
    "RMSprop",
]


def chosen(optimizer: Optimizer | None) -> Optimizer:
    """An optimizer as it is given; plain descent at 0.01 if there is none.

    Raises:
        ConfigError: It is no optimizer.
    """
    if optimizer is None:
        return SGD(1e-2)
    if isinstance(optimizer, type) or not hasattr(optimizer, "slots"):
        raise ConfigError(
            f"optimizer={optimizer!r}: want one of edgewise_trainer.optimizers, as "
            "optimizers.AdamW(1e-3)"
        )
    return optimizer


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
        want_rates(self.lr, self.weight_decay)
        want_part("momentum", self.momentum)
        if not isinstance(self.nesterov, bool):
            raise ConfigError(f"nesterov={self.nesterov!r}: want True or False")
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
        op = SgdUpdate(self.momentum, self.nesterov, self.weight_decay)
        rate, velocity = single(clock.rate, parameter), slots.get("momentum")
        new, *more = op.node(parameter, grad, rate, velocity)
        return new, dict(zip(self.slots, more, strict=True))


@dataclass(frozen=True, slots=True)
class _Moments:
    """What follows running means of the gradient and of its square.

    Attributes:
        lr: Learning rate, or a schedule of it.
        betas: How much of the two means stays at each step.
        eps: Added to the root of the square.
        weight_decay: What becomes of it the subclass says.
    """

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        want_rates(self.lr, self.weight_decay)
        want_betas(self.betas)
        want_from_0("eps", self.eps)

    @property
    def slots(self) -> tuple[str, ...]:
        """Running means of the gradient and of its square."""
        return ("mean", "square")

    def step(
        self,
        parameter: Value,
        grad: Value,
        slots: Slots,
        clock: Clock,
        *,
        decay: float = 0.0,
        kept: Value | None = None,
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate m / (sqrt(v) + eps)``, in PyTorch's order of operations.

        Both means are freed of their start at 0.  ``decay`` is added to the gradient,
        ``kept`` is the part of the parameter that the step leaves of it.
        """
        rate = Div()(Cast("f64")(clock.rate), since_start(clock, self.betas[0]))
        root = Sqrt()(since_start(clock, self.betas[1]))
        op = AdamUpdate(*self.betas, self.eps, decay)
        numbers = single(rate, parameter), single(root, parameter), kept
        found = op.node(parameter, grad, *numbers, *(slots[s] for s in self.slots))
        return found[0], dict(zip(self.slots, found[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Adam(_Moments):
    """Adam (Kingma and Ba, 2015); the decay is added to the gradient."""

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """The step of the gradient with its decay."""
        decay = self.weight_decay
        return self.step(parameter, grad, slots, clock, decay=decay)


@dataclass(frozen=True, slots=True)
class AdamW(_Moments):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    The decay is the part of a parameter that a step of rate 1 takes away.
    """

    weight_decay: float = 0.01

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate decay p``, then the step."""
        kept = None
        if self.weight_decay:
            shrink = times(clock.rate, self.weight_decay)
            kept = single(Sub()(scalar(1.0, shrink), shrink), parameter)
        return self.step(parameter, grad, slots, clock, kept=kept)


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
        want_rates(self.lr, self.weight_decay)
        want_from_0("eps", self.eps)
        want_part("alpha", self.alpha)
        want_part("momentum", self.momentum)

    @property
    def slots(self) -> tuple[str, ...]:
        """The running mean square; the velocity, if there is momentum."""
        return ("square", "momentum") if self.momentum else ("square",)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate g / (sqrt(s) + eps)``."""
        grad = decayed(parameter, grad, self.weight_decay)
        square = followed(slots["square"], Mul()(grad, grad), self.alpha)
        step = Div()(grad, Add()(Sqrt()(square), scalar(self.eps, grad)))
        found = {"square": square}
        if self.momentum:
            step = Add()(times(slots["momentum"], self.momentum), step)
            found["momentum"] = step
        return moved(parameter, step, clock.rate), found


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
        want_rates(self.lr, self.weight_decay)
        want_from_0("eps", self.eps)

    @property
    def slots(self) -> tuple[str, ...]:
        """The sum of squares."""
        return ("square",)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``s += g ** 2; p -= rate g / (sqrt(s) + eps)``."""
        grad = decayed(parameter, grad, self.weight_decay)
        square = Add()(slots["square"], Mul()(grad, grad))
        step = Div()(grad, Add()(Sqrt()(square), scalar(self.eps, grad)))
        return moved(parameter, step, clock.rate), {"square": square}


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
        want_rates(self.lr, self.weight_decay)
        want_betas(self.betas)

    @property
    def slots(self) -> tuple[str, ...]:
        """The running mean of the gradient."""
        return ("mean",)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``p -= rate (sign(b1 m + (1 - b1) g) + decay p)``."""
        first, second = self.betas
        step = Sign()(followed(slots["mean"], grad, first))
        step = decayed(parameter, step, self.weight_decay)
        mean = followed(slots["mean"], grad, second)
        return moved(parameter, step, clock.rate), {"mean": mean}
