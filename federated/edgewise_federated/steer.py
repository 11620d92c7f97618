"""Local steps that keep an eye on the others: FedProx's term, SCAFFOLD's controls."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.ir.graph import Value
from edgewise.ops import Add, Mul, Sub
from edgewise_trainer.around import Around
from edgewise_trainer.terms import scalar
from edgewise_trainer.update import Clock, Slots

ANCHOR, CONTROL = "federated_anchor", "federated_control"


@dataclass(frozen=True, slots=True)
class Proximal(Around):
    """An optimizer pulled to the model of all (FedProx, Li et al., 2020).

    Attributes:
        mu: Of ``mu / 2 * |p - model|^2``, which joins the loss.
    """

    mu: float

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of the optimizer, and the model of all."""
        return (*self.optimizer.slots, ANCHOR)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``g += mu * (p - anchor)``, then the optimizer's step."""
        away = Sub()(parameter, slots[ANCHOR])
        pulled = Add()(grad, Mul()(away, scalar(self.mu, away)))
        return self.optimizer.update(parameter, pulled, slots, clock)


@dataclass(frozen=True, slots=True)
class Controlled(Around):
    """An optimizer whose gradients are corrected for what a device has too much of.

    SCAFFOLD (Karimireddy et al., 2020): ``g + c - c_i``.
    """

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of the optimizer, and the correction."""
        return (*self.optimizer.slots, CONTROL)

    def update(
        self, parameter: Value, grad: Value, slots: Slots, clock: Clock
    ) -> tuple[Value, dict[str, Value]]:
        """``g += control``, then the optimizer's step."""
        steered = Add()(grad, slots[CONTROL])
        return self.optimizer.update(parameter, steered, slots, clock)
