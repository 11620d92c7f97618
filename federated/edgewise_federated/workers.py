"""What devices learn with: one learner for all that train the same."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.errors import ConfigError
from edgewise.model import Model
from edgewise_federated.client import Client
from edgewise_federated.config import Device, FederatedConfig
from edgewise_federated.device import Worker
from edgewise_federated.norms import part
from edgewise_federated.order import Order
from edgewise_federated.update import Layout
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import Optimizer
from edgewise_trainer.selection import selected
from edgewise_trainer.task import Trainable

EVERYONE = Device()


class Workers:
    """Learners by what is trained and how steps are steered; each is made once.

    Args:
        model: The model.
        config: Of the run.
        layout: Of what travels.
        loss: What each device makes small.
        optimizer: How.
        personal: Names of the parameters that stay with each.
    """

    def __init__(
        self,
        model: Model,
        config: FederatedConfig,
        layout: Layout,
        loss: str | Loss,
        optimizer: Optimizer,
        personal: Sequence[str],
    ) -> None:
        self._model, self._config, self._layout = model, config, layout
        self._ways, self._personal = (loss, optimizer), tuple(personal)
        self._workers: dict[tuple[str, float, bool], Worker] = {}
        self._parts: dict[str, Layout] = {}

    def sends(self, trainable: Trainable) -> Layout:
        """What of the model a device sends that trains a part.

        Raises:
            ConfigError: Nothing of that is shared.
        """
        key = repr(trainable)
        if key not in self._parts:
            module = self._model.module
            found = part(self._layout, module, selected(module, trainable))
            if not found.trained:
                raise ConfigError(
                    f"devices: trainable={trainable!r}: none of that is shared"
                )
            self._parts[key] = found
        return self._parts[key]

    def worker(self, trainable: Trainable, order: Order) -> Worker:
        """What a device that trains a part does an order with."""
        controlled = order.control is not None
        key = repr(trainable), order.mu, controlled
        if key not in self._workers:
            client = Client(
                self._model,
                *self._ways,
                trainable,
                order.mu,
                controlled,
                self._personal,
            )
            self._workers[key] = Worker(client, self._layout, self._config)
        return self._workers[key]


def device_of(config: FederatedConfig, index: int) -> Device:
    """What a device is said to be.

    Raises:
        ConfigError: Others are described, and it is not.
    """
    if config.devices is None:
        return EVERYONE
    if not 0 <= index < len(config.devices):
        count = len(config.devices)
        raise ConfigError(f"devices: got {count}; want one for device {index}, too")
    return config.devices[index]
