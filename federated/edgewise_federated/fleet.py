"""The devices of a simulated run, in one process and in time that costs none.

A device takes ``examples * passes / (RATE * speed)`` seconds of the clock of an agenda.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgewise.errors import ConfigError, FederatedError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.agenda import Agenda
from edgewise_federated.client import Data, given_inputs
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Seal
from edgewise_federated.device import FRESH, Memory
from edgewise_federated.keep import part_of
from edgewise_federated.order import Member, Order, Reply
from edgewise_federated.select import answers
from edgewise_federated.update import Layout, Update
from edgewise_federated.workers import Workers, device_of
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import Optimizer

if TYPE_CHECKING:  # only runs that hide updates want cryptography
    from edgewise_federated.sealed import Masks

RATE = 1000.0  # examples that a device of speed 1 passes over in a second


class Fleet:
    """All devices, in one process.

    Args:
        model: The model.
        partitions: (inputs, targets) of each device.
        config: Of the run.
        layout: Of what travels.
        loss: What each device makes small.
        optimizer: How.
        personal: Names of the parameters that stay with each.

    Attributes:
        size: How many devices there are.

    Raises:
        ConfigError: There are no devices, or not one description for each, or inputs
            without targets.
    """

    def __init__(
        self,
        model: Model,
        partitions: Sequence[Data],
        config: FederatedConfig,
        layout: Layout,
        loss: str | Loss,
        optimizer: Optimizer,
        personal: Sequence[str],
    ) -> None:
        if not partitions:
            raise ConfigError("simulate: got no partitions; want one a device")
        if config.devices is not None and len(config.devices) != len(partitions):
            got, want = len(config.devices), len(partitions)
            raise ConfigError(f"devices: got {got}; want {want}, one a partition")
        for index, data in enumerate(partitions):
            inputs, targets = given_inputs(data), len(data[1])
            if inputs != targets:
                raise ConfigError(
                    f"partition {index}: got {inputs} inputs and {targets} targets"
                )
        self.size = len(partitions)
        self._partitions, self._config = partitions, config
        self._workers = Workers(model, config, layout, loss, optimizer, personal)
        self._memory: dict[int, Memory] = {}
        self._pending: dict[int, Memory] = {}
        self._agenda = Agenda()
        self._seal: Masks | None = None
        self._members = [self._member(index) for index in range(self.size)]

    def now(self) -> float:
        """Seconds that have passed for the devices."""
        return self._agenda.time

    def present(self, want: int) -> Sequence[int]:
        """Devices that are ever there."""
        del want
        return [i for i, one in enumerate(self._members) if one.available > 0]

    def member(self, device: int) -> Member:
        """What a device is said to be."""
        return self._members[device]

    def seal(self, number: int, devices: Sequence[int], until: float) -> Seal:
        """Keys and shares of the devices that will answer."""
        del until
        # Only runs that hide updates want cryptography.
        from edgewise_federated.sealed import Masks  # noqa: PLC0415

        there = [i for i in devices if answers(self._config, number, i)]
        self._seal = Masks(there)
        return self._seal

    def send(self, device: int, order: Order) -> None:
        """Ask a device; what it learns it learns when its reply is wanted."""
        member = self._members[device]
        seconds = member.examples * order.epochs / member.speed
        self._agenda.add(device, order, seconds)

    def next(self, until: float) -> Reply | None:
        """The reply that is ready first, if that is before ``until``."""
        task = self._agenda.next(until)
        return None if task is None else self._reply(task.device, task.order)

    def forget(self, devices: Collection[int]) -> None:
        """What devices have not done yet they never will."""
        self._agenda.drop(devices)

    def busy(self) -> Mapping[int, int]:
        """Who has something to do."""
        return self._agenda.busy()

    def settle(self, taken: Collection[int]) -> None:
        """Let devices whose updates were used remember what they sent."""
        for device in taken:
            self._memory[device] = self._pending.pop(device)

    def _reply(self, device: int, order: Order) -> Reply:
        number = order.number
        if not answers(self._config, number, device):
            return Reply(device, number, None, failure="not there")
        before = self._memory.get(device, FRESH)
        worker = self._workers.worker(device_of(self._config, device).trainable, order)
        data, mask, beside = self._partitions[device], None, 0
        if self._seal is not None:
            mask, beside = self._seal.mask(device), self._seal.overhead(device)
        try:
            answer = worker.answer(device, order, data, before, mask)
        except FederatedError as error:
            return Reply(device, number, None, failure=str(error))
        self._memory[device] = before._replace(personal=answer.memory.personal)
        self._pending[device] = answer.memory
        arrays = worker.sends.named(answer.numbers())
        sent = answer.bytes + beside
        update = Update(arrays, answer.examples, answer.loss, sent)
        return Reply(device, number, update, answer.control, sent)

    def _member(self, index: int) -> Member:
        """What is said of a device; where nothing is, it takes no time."""
        config = self._config
        said = device_of(config, index)
        return Member(
            len(self._partitions[index][1]),
            self._workers.sends(said.trainable),
            said.local_epochs or config.local_epochs,
            float("inf") if config.devices is None else said.speed * RATE,
            said.available,
        )

    def facts(self) -> dict[str, Any]:
        """How many there are."""
        return {"fleet": self.size}

    def own(self) -> tuple[Mapping[str, Array], ...]:
        """Parameters that stayed with each device, by name."""
        return tuple(self._memory.get(i, FRESH).personal for i in range(self.size))

    def memory(self) -> dict[str, Array]:
        """What devices remember, by name, and what they are at."""
        found = {f"agenda/{k}": v for k, v in self._agenda.memory().items()}
        for index, memory in self._memory.items():
            found |= {f"{index}/{k}": array for k, array in memory.arrays().items()}
        return found

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
        self._agenda.remember(part_of(memory, "agenda"))
        for index in {name.partition("/")[0] for name in memory} - {"agenda"}:
            self._memory[int(index)] = Memory.of(part_of(memory, index))
