"""A device in a round: it gets the model, learns, and tells what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.norms import numbers, part
from edgewise_federated.steer import ANCHOR, CONTROL, Controlled, Proximal
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer
from edgewise_trainer.data import Inputs, batches
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import Optimizer
from edgewise_trainer.schedules import rate_at
from edgewise_trainer.values import replaced

Data = tuple[Inputs, Array]


def given_inputs(data: Data) -> int:
    """How many examples the inputs are: those of one that differs, if one does."""
    inputs, targets = data
    arrays = inputs.values() if isinstance(inputs, Mapping) else (inputs,)
    odd = (len(array) for array in arrays if len(array) != len(targets))
    return next(odd, len(targets))


class Work(NamedTuple):
    """What a device is asked to do.

    Attributes:
        epochs: Passes over its data.
        batch_size: Examples of a step.
        control: SCAFFOLD: the control of all, flat; None: there are none.
        seed: Decides the order of its examples.
    """

    epochs: int
    batch_size: int
    control: Array | None
    seed: tuple[int, ...]


class Learned(NamedTuple):
    """What came of it.

    Attributes:
        change: Of the parameters that it trains and that travel, flat.
        loss: Mean loss of the last pass.
        control: What the control of the device is now, flat; None: there is none.
        personal: Parameters that stay, by name.
    """

    change: Array
    loss: float
    control: Array | None
    personal: dict[str, Array]


class Client:
    """Learns for one device after another: what differs is given each time.

    Args:
        model: The model.
        loss: What it makes small.
        optimizer: How.
        trainable: What is trained.
        mu: Of the term that pulls steps to the model of all; 0: none.
        controlled: Whether controls correct the steps.
        personal: Names of the parameters that stay.
    """

    def __init__(
        self,
        model: Model,
        loss: str | Loss,
        optimizer: Optimizer,
        trainable: str | Sequence[str] = "all",
        mu: float = 0.0,
        controlled: bool = False,
        personal: Sequence[str] = (),
    ) -> None:
        self._model, self._pulled = model, mu > 0
        if self._pulled:
            optimizer = Proximal(optimizer, mu)
        if controlled:
            optimizer = Controlled(optimizer)
        self._optimizer = optimizer
        self._trainer = Trainer(model, loss, optimizer, trainable)
        self._personal = tuple(personal)
        self._sends: dict[int, Layout] = {}
        # What a device begins with that neither the model of all nor it has: never what
        # the device before it had.
        self._first = numbers(self._trainer.export())

    def sends(self, layout: Layout) -> Layout:
        """The part of all numbers that it trains: no other changes."""
        if layout.hash not in self._sends:
            module, trained = self._model.module, self._trainer.trained
            self._sends[layout.hash] = part(layout, module, trained)
        return self._sends[layout.hash]

    def learn(
        self,
        values: Array,
        layout: Layout,
        data: Data,
        work: Work,
        personal: Mapping[str, Array],
        control: Array | None,
    ) -> Learned:
        """A device's part of a round.

        Args:
            values: The model of all, flat.
            layout: What its numbers are.
            data: The device's examples.
            work: What it is asked.
            personal: Its own parameters; those of the model where it has none yet.
            control: SCAFFOLD: its control, flat, of what it sends.

        Raises:
            FederatedError: It has no examples, or its training left the finite numbers.
        """
        if not len(data[1]):
            raise FederatedError("it has no examples to learn from")
        named, sends = layout.named(values), self.sends(layout)
        given = {**self._first, **named, **personal}
        common = correction = None
        if work.control is not None and control is not None:
            common = sends.learned().flat(layout.named(work.control))
            correction = common - control
        self._trainer.restart(given, self._state(named, sends, correction))
        loss = self._fit(data, work)
        now = numbers(self._trainer.export())
        change = sends.flat(now) - sends.flat(named)
        if not np.isfinite(change).all() or not np.isfinite(loss):
            raise FederatedError("its training left the finite numbers")
        kept = {name: now[name] for name in self._personal}
        if common is None or control is None:
            return Learned(change, loss, None, kept)
        steps = self._trainer.steps
        rate = sum(rate_at(self._optimizer.lr, step) for step in range(steps))
        learned = change[: sends.trained]
        moved = control - common - learned / np.float32(max(rate, 1e-12))
        return Learned(change, loss, moved.astype(np.float32), kept)

    def _fit(self, data: Data, work: Work) -> float:
        """All passes; the mean loss of the last."""
        loss = float("nan")
        for epoch in range(work.epochs):
            order = np.random.default_rng((*work.seed, epoch))
            cut = batches(data, work.batch_size, order)
            loss = float(np.mean([self._trainer.step(x, y) for x, y in cut]))
        return loss

    def _state(
        self, named: Mapping[str, Array], sends: Layout, correction: Array | None
    ) -> dict[str, Array]:
        """What the steering optimizers begin with, as it is stored."""
        slots: dict[str, Mapping[str, Array]] = {}
        if self._pulled:
            slots[ANCHOR] = named
        if correction is not None:
            slots[CONTROL] = sends.named(correction)
        found = {}
        for slot, arrays in slots.items():
            for key in set(self._trainer.trained) & arrays.keys():
                info = self._model.module.variables[key]
                stored = replaced(info, key, arrays[key]).initial
                if stored is not None:
                    found[f"{key}/{slot}"] = stored
        return found
