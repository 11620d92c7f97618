"""A device's side of an order: it learns, and packs what it sends.

The same code answers in a simulation and behind a transport; what a device remembers
comes in and goes out, so that whoever calls decides where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from edgewise.ir.op import Array
from edgewise_federated.client import Client, Data, Work
from edgewise_federated.codecs import Feedback, Message, codec, received
from edgewise_federated.config import FederatedConfig
from edgewise_federated.keep import part_of
from edgewise_federated.order import Order
from edgewise_federated.update import Layout

LEARN, SEND = 3, 4  # what is drawn for
FLOAT = 4  # bytes

Mask = Callable[[Array], Array]


class Memory(NamedTuple):
    """What a device remembers.

    Attributes:
        personal: Parameters that stay, by name.
        control: SCAFFOLD: its control, flat, of what it sends; None: zeros.
        lost: What its codec has lost so far; None: nothing.
    """

    personal: Mapping[str, Array]
    control: Array | None = None
    lost: Array | None = None

    def arrays(self) -> dict[str, Array]:
        """All of it, by name."""
        found = {f"own/{name}": array for name, array in self.personal.items()}
        slots = {"control": self.control, "lost": self.lost}
        return found | {k: array for k, array in slots.items() if array is not None}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Memory:
        """What ``arrays`` gave, as it was."""
        own = part_of(arrays, "own")
        return cls(own, arrays.get("control"), arrays.get("lost"))


FRESH = Memory({})


class Answer(NamedTuple):
    """What a device sends, and what it remembers from then on.

    Attributes:
        sent: Its change: encoded by its codec, or words under masks.
        examples: How many it learned from.
        loss: Mean loss of its last pass.
        control: SCAFFOLD: by how much its control changed.
        memory: What it remembers if its update is used; if not, ``personal`` alone is
            new.
    """

    sent: Message | Array
    examples: int
    loss: float
    control: Array | None
    memory: Memory

    @property
    def bytes(self) -> int:
        """What travels."""
        sent = self.sent
        size = len(sent.data) if isinstance(sent, Message) else sent.nbytes
        return size + (0 if self.control is None else FLOAT * self.control.size)

    def numbers(self) -> Array:
        """What arrives, flat."""
        return received(self.sent) if isinstance(self.sent, Message) else self.sent


class Worker:
    """What devices that train the same answer orders with.

    Args:
        client: Learns.
        layout: Of the model of all.
        config: Of the run.
    """

    def __init__(self, client: Client, layout: Layout, config: FederatedConfig) -> None:
        self._client, self._layout, self._config = client, layout, config
        self.sends = client.sends(layout)

    def answer(
        self,
        device: int,
        order: Order,
        data: Data,
        memory: Memory,
        mask: Mask | None = None,
    ) -> Answer:
        """Do what an order says.

        Args:
            device: Who does it: decides with the order what is drawn.
            order: What is asked.
            data: The device's examples.
            memory: What it remembers.
            mask: Hides words where the order asks for sums.

        Raises:
            FederatedError: Its training left the finite numbers.
        """
        config = self._config
        who = (config.seed, order.number, device)
        work = Work(order.epochs, config.batch_size, order.control, (*who, LEARN))
        old = memory.control
        if order.control is not None and old is None:
            old = np.zeros(self.sends.trained, np.float32)
        learned = self._client.learn(
            order.values, self._layout, data, work, memory.personal, old
        )
        change, examples = clipped(learned.change, order.clip), len(data[1])
        control, moved = learned.control, None
        if control is not None and old is not None:
            moved = control - old
        kept = Memory(learned.personal, control, memory.lost)
        if order.sums is not None and mask is not None:
            # Only runs that hide updates want cryptography.
            from edgewise_federated.sealed import words  # noqa: PLC0415

            small = change / self._layout.reach(order.values)
            hidden = mask(words(small, order.sums))
            return Answer(hidden, examples, learned.loss, moved, kept)
        whole = self.sends.size - self.sends.trained
        feedback = Feedback(codec(config.codec), whole, memory.lost)
        message = feedback.send(change, np.random.default_rng((*who, SEND)))
        kept = kept._replace(lost=feedback.lost)
        return Answer(message, examples, learned.loss, moved, kept)


def clipped(change: Array, most: float | None) -> Array:
    """A change of at most some norm; None: any."""
    if most is None:
        return change
    norm = float(np.linalg.norm(change))
    return change * np.float32(min(1.0, most / max(norm, 1e-12)))
