"""Local steps that keep an eye on the others: FedProx's term, SCAFFOLD's controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.ir.graph import Value
from edgewise.ops import Add, Mul, Sub
from edgewise_trainer.around import optimizer_of, prepared
from edgewise_trainer.optimizers import Optimizer
from edgewise_trainer.schedules import Rate
from edgewise_trainer.terms import scalar
from edgewise_trainer.update import Clock, Slots

ANCHOR, CONTROL = "federated_anchor", "federated_control"


@dataclass(frozen=True, slots=True)
class Proximal:
    """An optimizer pulled to the model of all (FedProx, Li et al., 2020).

    Attributes:
        optimizer: The optimizer.
        mu: Of ``mu / 2 * |p - model|^2``, which joins the loss.
    """

    optimizer: Optimizer
    mu: float

    @property
    def lr(self) -> Rate:
        """That of the optimizer."""
        return self.optimizer.lr

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of the optimizer, and the model of all."""
        return (*self.optimizer.slots, ANCHOR)

    def of(self, key: str) -> Optimizer:
        """The same around what the optimizer is for a parameter."""
        return Proximal(optimizer_of(self.optimizer, key), self.mu)

    def prepared(self, grads: Mapping[str, Value]) -> dict[str, Value]:
        """Gradients of the loss as the optimizer wants them."""
        return prepared(self.optimizer, grads)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``g += mu * (p - anchor)``, then the optimizer's step."""
        away = Sub()(parameter, slots[ANCHOR])
        pulled = Add()(grad, Mul()(away, scalar(self.mu, away)))
        return self.optimizer.update(parameter, pulled, slots, clock)


@dataclass(frozen=True, slots=True)
class Controlled:
    """An optimizer whose gradients are corrected for what a device has too much of.

    SCAFFOLD (Karimireddy et al., 2020): ``g + c - c_i``.

    Attributes:
        optimizer: The optimizer.
    """

    optimizer: Optimizer

    @property
    def lr(self) -> Rate:
        """That of the optimizer."""
        return self.optimizer.lr

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of the optimizer, and the correction."""
        return (*self.optimizer.slots, CONTROL)

    def of(self, key: str) -> Optimizer:
        """The same around what the optimizer is for a parameter."""
        return Controlled(optimizer_of(self.optimizer, key))

    def prepared(self, grads: Mapping[str, Value]) -> dict[str, Value]:
        """Gradients of the loss as the optimizer wants them."""
        return prepared(self.optimizer, grads)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``g += control``, then the optimizer's step."""
        steered = Add()(grad, slots[CONTROL])
        return self.optimizer.update(parameter, steered, slots, clock)
