"""The devices of a simulated run: what each remembers, and what it sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.client import Client, Data, Learned, Work
from edgewise_federated.codecs import Feedback, codec, received
from edgewise_federated.config import Device, FederatedConfig
from edgewise_federated.update import Layout
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import Optimizer

LEARN, SEND = 3, 4  # what is drawn for
EVERYONE = Device()


class Fleet:
    """All devices, in one process.

    Attributes:
        size: How many there are.
        personal: Names of the parameters that stay with each.
    """

    def __init__(
        self,
        model: Model,
        partitions: Sequence[Data],
        config: FederatedConfig,
        loss: str | Loss,
        optimizer: Optimizer,
        personal: Sequence[str],
        layout: Layout,
    ) -> None:
        if not partitions:
            raise ConfigError("simulate: got no partitions; want one a device")
        if config.devices is not None and len(config.devices) != len(partitions):
            got, want = len(config.devices), len(partitions)
            raise ConfigError(f"devices: got {got}; want {want}, one a partition")
        self.size, self.personal = len(partitions), tuple(personal)
        self._model, self._partitions, self._config = model, partitions, config
        self._ways = (loss, optimizer)
        self._clients: dict[str, Client] = {}
        whole = layout.size - layout.trained
        self._feedback = [Feedback(codec(config.codec), whole) for _ in partitions]
        self._own: list[dict[str, Array]] = [{} for _ in partitions]
        self._controls: dict[int, Array] = {}

    def examples(self, index: int) -> int:
        """How many a device learns from."""
        return len(self._partitions[index][1])

    def learn(
        self,
        index: int,
        number: int,
        values: Array,
        layout: Layout,
        control: Array | None,
        mu: float,
    ) -> Learned:
        """A device's part of a round."""
        device, config = self._device(index), self._config
        work = Work(
            device.local_epochs or config.local_epochs,
            config.batch_size,
            control,
            (config.seed, number, index, LEARN),
        )
        own = None
        if control is not None:
            own = self._controls.get(index, np.zeros_like(control))
        client = self._client(device, mu)
        learned = client.learn(
            values, layout, self._partitions[index], work, self._own[index], own
        )
        self._own[index] = learned.personal
        return learned

    def send(self, index: int, number: int, change: Array) -> tuple[Array, int]:
        """What of a change arrives, and its bytes on the way."""
        draw = np.random.default_rng((self._config.seed, number, index, SEND))
        feedback = self._feedback[index]
        message = feedback.send(change, draw)
        return received(message), len(message.data)

    def keep(self, index: int, control: Array) -> Array:
        """Remember a device's control; how it changed."""
        old = self._controls.get(index, np.zeros_like(control))
        self._controls[index] = control
        return control - old

    def _device(self, index: int) -> Device:
        devices = self._config.devices
        return EVERYONE if devices is None else devices[index]

    def _client(self, device: Device, mu: float) -> Client:
        """The learner for devices that train the same."""
        key = repr(device.trainable)
        if key not in self._clients:
            loss, optimizer = self._ways
            self._clients[key] = Client(
                self._model,
                loss,
                optimizer,
                self._config.strategy,
                device.trainable,
                mu,
                self.personal,
            )
        return self._clients[key]

    def memory(self) -> dict[str, Array]:
        """What devices remember, by name."""
        found: dict[str, Array] = {}
        for index, feedback in enumerate(self._feedback):
            if feedback.lost is not None:
                found[f"lost/{index}"] = feedback.lost
            for name, array in self._own[index].items():
                found[f"own/{index}/{name}"] = array
        return found | {f"control/{i}": array for i, array in self._controls.items()}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
        for name, array in memory.items():
            kind, _, rest = name.partition("/")
            index, _, key = rest.partition("/")
            if kind == "lost":
                self._feedback[int(index)].lost = array
            elif kind == "own":
                self._own[int(index)][key] = array
            elif kind == "control":
                self._controls[int(index)] = array
