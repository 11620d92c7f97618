"""What goes around an optimizer: groups of parameters, bounds, a running average.

Each holds the optimizer that it is around, so that they nest:
``Averaged(Clipped(AdamW(1e-3), norm=1.0))``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value, constant
from edgewise.ops import (
    Add,
    Clip,
    Div,
    Greater,
    Minimum,
    Mul,
    ReduceSum,
    Sqrt,
    Sub,
    Where,
)
from edgewise_trainer.names import AVERAGE
from edgewise_trainer.schedules import Rate
from edgewise_trainer.terms import scalar
from edgewise_trainer.update import (
    Clock,
    Optimizer,
    Slots,
    single,
    times,
    want_optimizer,
)
from edgewise_trainer.wanted import want_from_0, want_kinds, want_number, want_part

Grads = Mapping[str, Value]


def prepared(optimizer: Optimizer, grads: Grads) -> dict[str, Value]:
    """All gradients as an optimizer wants them, by the names of their parameters."""
    change: Callable[[Grads], dict[str, Value]] | None
    change = getattr(optimizer, "prepared", None)
    return dict(grads) if change is None else change(grads)


def optimizer_of(optimizer: Optimizer, key: str) -> Optimizer:
    """What an optimizer is for one parameter."""
    choose: Callable[[str], Optimizer] | None = getattr(optimizer, "of", None)
    return optimizer if choose is None else choose(key)


@dataclass(frozen=True, slots=True)
class Around:
    """An optimizer around another.

    Attributes:
        optimizer: The other.
    """

    optimizer: Optimizer

    def __post_init__(self) -> None:
        want_optimizer(self.optimizer)

    @property
    def lr(self) -> Rate:
        """The rate of the other."""
        return self.optimizer.lr

    @property
    def slots(self) -> tuple[str, ...]:
        """What the other remembers."""
        return self.optimizer.slots

    def of(self, key: str) -> Optimizer:
        """The same around what the other is for a parameter."""
        inner = optimizer_of(self.optimizer, key)
        return dataclasses.replace(self, optimizer=inner)

    def prepared(self, grads: Grads) -> dict[str, Value]:
        """As the other wants them."""
        return prepared(self.optimizer, grads)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """As the other does."""
        return self.optimizer.update(parameter, grad, slots, clock)


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters that are trained otherwise.

    Attributes:
        names: Patterns of their names, as a shell has them.
        rate: Times the learning rate.
        weight_decay: In place of the optimizer's; None: the same.
    """

    names: tuple[str, ...]
    rate: float = 1.0
    weight_decay: float | None = None

    def __post_init__(self) -> None:
        want_kinds("names", self.names, str, "several, as ('*.bias',)")
        want_from_0("rate", self.rate)
        if self.weight_decay is not None:
            want_from_0("weight_decay", self.weight_decay)

    def holds(self, key: str) -> bool:
        """Whether a parameter is one of them; factors of an adapter go with it."""
        weight = key.removesuffix("/lora_a").removesuffix("/lora_b")
        return any(fnmatchcase(weight, pattern) for pattern in self.names)


@dataclass(frozen=True, slots=True)
class Grouped(Around):
    """Other rates and decays for some parameters; the first group that fits counts.

    Attributes:
        groups: The groups.
    """

    groups: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        want_optimizer(self.optimizer)
        want_kinds("groups", self.groups, Group, "several of Group(names, ...)")

    def prepared(self, grads: Grads) -> dict[str, Value]:
        """As the other wants them, once every group is known to hold something."""
        for group in self.groups:
            if not any(map(group.holds, grads)):
                raise ConfigError(f"{group}: no trained parameter is called so")
        return prepared(self.optimizer, grads)

    def of(self, key: str) -> Optimizer:
        """The other with the rate and the decay of the parameter's group."""
        inner = optimizer_of(self.optimizer, key)
        group = next((group for group in self.groups if group.holds(key)), None)
        if group is None:
            return inner
        if group.weight_decay is not None:
            inner = _decaying(inner, group.weight_decay)
        return inner if group.rate == 1.0 else _Scaled(inner, group.rate)


@dataclass(frozen=True, slots=True)
class _Scaled(Around):
    """Times the learning rate.

    Attributes:
        rate: What it is times.
    """

    rate: float

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """As the other does at that rate."""
        scaled = clock._replace(rate=times(clock.rate, self.rate))
        return self.optimizer.update(parameter, grad, slots, scaled)


@dataclass(frozen=True, slots=True)
class Clipped(Around):
    """Bounds on gradients (``clip_grad_value_``, then ``clip_grad_norm_``).

    Attributes:
        norm: The largest norm of all gradients together; None: any.
        value: The largest of a single number, either way; None: any.
    """

    norm: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        want_optimizer(self.optimizer)
        for name in ("norm", "value"):
            bound = getattr(self, name)
            if bound is not None:
                want_number(name, bound, "a number above 0", lambda x: x > 0.0)

    def prepared(self, grads: Grads) -> dict[str, Value]:
        """Bounded, then as the other wants them."""
        found = dict(grads)
        if self.value is not None:
            clip = Clip(-self.value, self.value)
            found = {key: clip(grad) for key, grad in found.items()}
        if self.norm is not None:
            found = _shortened(found, self.norm)
        return prepared(self.optimizer, found)


@dataclass(frozen=True, slots=True)
class Averaged(Around):
    """Keeps an exponential running average of parameters beside them.

    It begins with the parameters after the first step (``get_ema_multi_avg_fn``).
    ``Trainer.evaluate`` and ``Trainer.export`` use it where they are told to.

    Attributes:
        decay: How much of the average stays at each step.
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        want_optimizer(self.optimizer)
        want_part("decay", self.decay)

    @property
    def slots(self) -> tuple[str, ...]:
        """What the other remembers, and the average."""
        return (*self.optimizer.slots, AVERAGE)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """As the other does, and the average after it."""
        new, changed = self.optimizer.update(parameter, grad, slots, clock)
        later = Greater()(clock.step, constant(np.asarray(1.0)))
        none, whole = constant(np.asarray(0.0)), constant(np.asarray(self.decay))
        kept = single(Where()(later, whole, none), new)
        behind = Mul()(Sub()(slots[AVERAGE], new), kept)
        return new, {**changed, AVERAGE: Add()(new, behind)}


def _decaying(optimizer: Any, decay: float) -> Any:
    """An optimizer with another decay, however deep it lies."""
    inner = getattr(optimizer, "optimizer", None)
    if inner is not None:
        return dataclasses.replace(optimizer, optimizer=_decaying(inner, decay))
    if not hasattr(optimizer, "weight_decay"):
        raise ConfigError(f"weight_decay={decay}: {optimizer} has none")
    return dataclasses.replace(optimizer, weight_decay=decay)


def _shortened(grads: dict[str, Value], norm: float) -> dict[str, Value]:
    """Gradients that are together no longer than ``norm``."""
    length = Sqrt()(_total(_squares(grad) for grad in grads.values()))
    part = Div()(scalar(norm, length), Add()(length, scalar(1e-6, length)))
    factor = Minimum()(part, scalar(1.0, part))
    return {key: Mul()(grad, single(factor, grad)) for key, grad in grads.items()}


def _squares(grad: Value) -> Value:
    axes = tuple(range(grad.type.rank))
    return ReduceSum(axes, keepdims=False)(Mul()(grad, grad))


def _total(values: Iterable[Value]) -> Value:
    first, *rest = values
    for value in rest:
        first = Add()(first, single(value, first))
    return first
