"""A device behind a transport: its data and what it remembers never leave it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError, FederatedError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.client import Data, given_inputs
from edgewise_federated.config import FederatedConfig
from edgewise_federated.device import Answer, Mask
from edgewise_federated.norms import numbers
from edgewise_federated.order import Member, Order
from edgewise_federated.shared import shared
from edgewise_federated.store import Remembered, Store, begun
from edgewise_federated.update import Layout
from edgewise_federated.workers import Workers, device_of
from edgewise_trainer import Trainer
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import Optimizer

Source = Callable[[int], Data]


class Told(NamedTuple):
    """What comes with an order beside it.

    Attributes:
        run: Of the server.
        device: The number of the device in it.
        used: The last order of the device whose answer was used; 0: none was.
    """

    run: str
    device: int
    used: int


class Resident:
    """Answers for one device or, where a process simulates them, for several.

    Args:
        model: The model; its parameters are where those begin that stay.
        data: Gives (inputs, targets) of a node.
        config: Of the run.
        loss: What is made small.
        optimizer: How.
        folder: Where nodes remember.

    Attributes:
        layout: Of what travels.
    """

    def __init__(
        self,
        model: Model,
        data: Source,
        config: FederatedConfig,
        loss: str | Loss,
        optimizer: Optimizer,
        folder: Path,
    ) -> None:
        self._data, self._config, self._folder = data, config, folder
        self._trainer = Trainer(model, loss, optimizer)
        self.layout, _, personal = shared(model, self._trainer, config)
        self._begin = numbers(model)
        self._workers = {
            codec: Workers(
                model,
                replace(config, codec=codec),
                self.layout,
                loss,
                optimizer,
                personal,
            )
            for codec in {config.codec, "float32"}
        }
        # Personal parts are kept for models of the same form, whatever their numbers.
        form = Layout({name: array.shape for name, array in self._begin.items()})
        self._model = f"{form.hash:08x}-{self.layout.hash:08x}"

    def data(self, node: int) -> Data:
        """The examples of a node.

        Raises:
            FederatedError: They are none.
        """
        data = self._data(node)
        inputs, targets = given_inputs(data), len(data[1])
        if not targets or inputs != targets:
            raise FederatedError(
                f"node {node}: got {inputs} inputs and {targets} targets; want as many,"
                " and one at least"
            )
        return data

    def member(self, node: int) -> Member:
        """What a server is told of a node."""
        said, config = device_of(self._config, node), self._config
        sends = self._workers[config.codec].sends(said.trainable)
        epochs = said.local_epochs or config.local_epochs
        return Member(len(self.data(node)[1]), sends, epochs)

    def answer(
        self, node: int, order: Order, told: Told, mask: Mask | None = None
    ) -> Answer:
        """Do what an order says, and remember it.

        Raises:
            FederatedError: It failed, or asks for what the device does not show.
        """
        if self._config.secure_aggregation and (order.sums is None or mask is None):
            raise FederatedError("this device shows sums of updates, and none alone")
        return self._done(node, self._config.codec, order, told, mask)

    def plain(self, node: int, order: Order, told: Told) -> Answer:
        """The same for a server that knows nothing of codecs and secure sums.

        Raises:
            FederatedError: It failed, or the device shows sums alone.
        """
        if self._config.secure_aggregation:
            raise FederatedError("this device shows sums of updates, and none alone")
        return self._done(node, "float32", order, told, None)

    def whole(self, node: int, answer: Answer) -> Array:
        """The change of an answer, of all that travels: zero where nothing is sent."""
        sends = self._workers["float32"].sends(device_of(self._config, node).trainable)
        return self.layout.filled(sends.named(answer.numbers()))

    def evaluate(self, node: int, values: Array) -> tuple[dict[str, float], int]:
        """Scores of a model with the parts of a node, on its data, and their number."""
        x, y = self.data(node)
        own: Mapping[str, Array] = {}
        store = self._store(node)
        with store.locked():
            remembered = store.load()
        if remembered is not None:
            own = remembered.after.personal
        named = self.layout.named(values)
        self._trainer.restart({**self._begin, **named, **own})
        return self._trainer.evaluate((x, y), len(y)), len(y)

    def folder(self, node: int) -> Path:
        """Where a node remembers."""
        return self._folder / str(node)

    def _store(self, node: int) -> Store:
        return Store(self.folder(node) / self._model)

    def _done(
        self, node: int, codec: str, order: Order, told: Told, mask: Mask | None
    ) -> Answer:
        data, privacy = self.data(node), self._config.privacy
        if order.values.shape != (self.layout.size,):
            got, want = order.values.size, self.layout.size
            raise FederatedError(f"the model of all: got {got} numbers; want {want}")
        if not np.isfinite(order.values).all():
            raise FederatedError("the model of all has left the finite numbers")
        if privacy is not None:  # whatever the server says
            if order.sums is not None and order.sums.weight != 1:
                raise FederatedError("under privacy no device counts more than once")
            order = order._replace(clip=min(order.clip or privacy.clip, privacy.clip))
        trainable = device_of(self._config, node).trainable
        worker = self._workers[codec].worker(trainable, order)
        store = self._store(node)
        with store.locked():
            before = begun(store.load(), told.run, order.number, told.used)
            answer = worker.answer(told.device, order, data, before, mask)
            kept = Remembered(told.run, order.number, before, answer.memory)
            store.save(kept)
        return answer


def state_folder(given: object, config: FederatedConfig, default: Path) -> Path:
    """Where nodes remember: as the node is told, else beside the run, else the user's.

    Raises:
        ConfigError: What the node is told is no path.
    """
    if given is not None:
        if not isinstance(given, str) or not given:
            raise ConfigError(f"state-dir={given!r}: want a folder")
        return Path(given)
    if config.checkpoint_dir is not None:
        return Path(config.checkpoint_dir) / "devices"
    return default
