"""Flower's strategy objects in our loop: they choose devices and join what came.

They see full models, as in Flower: that of all with the change of a device on it.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
from flwr.app import Array as Wire
from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Error,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.serverapp.strategy import Strategy

from edgewise.errors import (
    CheckpointError,
    ConfigError,
    EdgewiseError,
    FederatedError,
    InternalError,
)
from edgewise.ir.op import Array
from edgewise_federated.aggregate import mean
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.flower.attributes import Reader, Writer
from edgewise_federated.flower.identity import identify
from edgewise_federated.flower.roster import Roster
from edgewise_federated.join import joined
from edgewise_federated.order import Reply
from edgewise_federated.update import Layout, Update

logger = logging.getLogger(__name__)
CHOOSE, JOIN = 6, 7  # what is drawn for
NO_REPLY = 3  # Flower's code of a node that did not answer
KNOWN = {"server-round", "proximal-mu"}  # that devices can heed
FACTS = "facts"
T = TypeVar("T")

# What strategies were before their runs.
_BEGINNINGS: WeakKeyDictionary[Strategy, str | None] = WeakKeyDictionary()


class Guest:
    """A strategy of Flower's, asked at the places where our loop decides.

    Statistics of batch norms are no part of what it sees: they become the mean of those
    of the devices, as under every strategy.

    Args:
        strategy: The object.
        layout: What the numbers of the model are.
        values: The model, flat.
        config: Of the run: its seed decides what the strategy draws from ``random`` and
            ``numpy.random``.

    Attributes:
        values: The model of all, flat float32.
        mu: Of FedProx's term, in the round that was chosen last.
        control: None: no strategy of Flower's has any.

    Raises:
        ConfigError: It is no strategy of Flower's Message API, or remembers a run.
    """

    control = None

    def __init__(
        self, strategy: object, layout: Layout, values: Array, config: FederatedConfig
    ) -> None:
        if not isinstance(strategy, Strategy):
            raise ConfigError(
                f"strategy={strategy!r}: want a name, or an object of"
                " flwr.serverapp.strategy (not of flwr.server.strategy)"
            )
        identify()
        self.values, self.mu = values, 0.0
        self._strategy, self._name = strategy, type(strategy).__name__
        self._layout, self._learned = layout, layout.learned()
        self._seed, self._patience = config.seed, config.deadline_s
        self._sent: dict[int, Message] = {}
        self._kind = fresh(strategy)

    def chosen(self, number: int, crew: Crew) -> list[int]:
        """The devices that it asks; device ``i`` is node ``i + 1`` to it.

        Raises:
            FederatedError: It finds too few, or wants what devices do not know.
        """
        roster = Roster(crew, self._patience)
        arrays = self._record(self.values)
        messages = self._drawn(
            (number, CHOOSE),
            lambda: list(
                self._strategy.configure_train(number, arrays, ConfigRecord(), roster)
            ),
        )
        self._sent = {m.metadata.dst_node_id - 1: m for m in messages}
        if len(self._sent) < len(messages):
            raise FederatedError(f"{self._name} asks a node twice in round {number}")
        terms = {self._mu(message) for message in messages}
        if len(terms) > 1:
            raise FederatedError(f"{self._name} wants a proximal-mu for each device")
        self.mu = max(terms, default=0.0)
        return sorted(self._sent)

    def take(self, number: int, replies: Sequence[Reply], crew: Crew) -> None:
        """Let it join replies; who sent none has failed.

        Raises:
            FederatedError: It cannot, or gives what is no such model.
        """
        del crew
        updates = {r.device: r.update for r in replies if r.update is not None}
        messages = [self._reply(m, updates.get(d)) for d, m in self._sent.items()]
        arrays, _ = self._drawn(
            (number, JOIN), lambda: self._strategy.aggregate_train(number, messages)
        )
        if arrays is None:
            logger.warning("round %d: %s took no update", number, self._name)
            return
        change = joined(mean, self._layout, list(updates.values()))
        values = (self.values + change).astype(np.float32)
        values[self._layout.positive :].clip(0, out=values[self._layout.positive :])
        values[: self._layout.trained] = self._numbers(arrays)
        self.values = values

    def take_sum(self, number: int, mean: Array, count: int, crew: Crew) -> None:
        """No config lets sums come here.

        Raises:
            InternalError: Always.
        """
        del number, mean, count, crew
        raise InternalError(f"{self._name} got the sum of a round")

    def facts(self) -> dict[str, Any]:
        """What it is and how it is set.

        Raises:
            CheckpointError: Something of it cannot be written; it says what.
        """
        return {"strategy": self._kind or kind_of(self._strategy)}

    def memory(self) -> dict[str, Array]:
        """The model, and all that the strategy remembers.

        Raises:
            CheckpointError: Something of it cannot be written; it says what.
        """
        writer = Writer()
        tree = json.dumps(writer.value(self._strategy, self._name))
        facts = np.frombuffer(tree.encode(), np.uint8)
        return {"model": self.values, FACTS: facts, **writer.arrays}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
        self.values = memory["model"]
        tree = json.loads(memory[FACTS].tobytes())
        Reader(memory).value(tree, self._strategy)

    def _record(self, values: Array) -> ArrayRecord:
        named = self._learned.named(values[: self._layout.trained])
        return ArrayRecord({k: Wire(np.ascontiguousarray(a)) for k, a in named.items()})

    def _mu(self, message: Message) -> float:
        """What a message asks, if devices understand it."""
        if message.metadata.message_type != MessageType.TRAIN:
            kind = message.metadata.message_type
            raise FederatedError(f"{self._name} sends {kind!r} messages; want 'train'")
        records = [self._numbers(r) for r in message.content.array_records.values()]
        learned = self.values[: self._layout.trained]
        if len(records) != 1 or not np.array_equal(records[0], learned):
            raise FederatedError(
                f"{self._name} sends a device another model than that of all"
            )
        asked: dict[str, Any] = {}
        for record in message.content.config_records.values():
            asked |= dict(record)
        if odd := sorted(asked.keys() - KNOWN):
            raise FederatedError(
                f"{self._name} asks devices for {', '.join(odd)}, which they do not"
                f" know; they heed {', '.join(sorted(KNOWN))}"
            )
        return float(asked.get("proximal-mu", 0.0))

    def _reply(self, message: Message, update: Update | None) -> Message:
        """A reply as a strategy expects it: a whole model and its metrics."""
        if update is None:
            return Message(Error(NO_REPLY, "no usable update"), reply_to=message)
        change = self._layout.flat(update.arrays)
        metrics = MetricRecord(
            {
                "num-examples": int(update.examples),
                "loss": float(update.loss),
                "train_loss": float(update.loss),
            }
        )
        arrays = self._record((self.values + change).astype(np.float32))
        content = RecordDict({"arrays": arrays, "metrics": metrics})
        return Message(content, reply_to=message)

    def _numbers(self, arrays: ArrayRecord) -> Array:
        """The numbers of a model that the strategy gave, flat."""
        try:
            named = {name: array.numpy() for name, array in arrays.items()}
            self._learned.check(named)
        except (EdgewiseError, TypeError, ValueError) as error:
            raise FederatedError(f"{self._name} gave no such model: {error}") from error
        return self._learned.flat(named).astype(np.float32)

    def _drawn(self, draw: tuple[int, ...], call: Callable[[], T]) -> T:
        """What it gives where all that it draws is decided.

        Raises:
            FederatedError: It failed.
        """
        with seeded((self._seed, *draw)):
            try:
                return call()
            except EdgewiseError:
                raise
            except Exception as error:
                raise FederatedError(f"{self._name}: {error}") from error


def kind_of(strategy: Strategy) -> str:
    """What a strategy is and how it is set: those of a kind can go on for each other.

    Raises:
        CheckpointError: Something of it cannot be written; it says what.
    """
    writer = Writer()
    tree = writer.value(strategy, type(strategy).__name__)
    sums = {name: crc32(array.tobytes()) for name, array in writer.arrays.items()}
    return f"{type(strategy).__qualname__} {json.dumps([tree, sums])}"


def fresh(strategy: Strategy) -> str | None:
    """The kind of a strategy that begins a run; None where that cannot be told.

    Raises:
        ConfigError: It remembers another run, which would go on in this one.
    """
    try:
        kind = kind_of(strategy)
    except CheckpointError:
        kind = None
    if kind != _BEGINNINGS.setdefault(strategy, kind):
        raise ConfigError(
            f"strategy: this {type(strategy).__name__} was in a run before and has"
            " changed since; give each run a new one"
        )
    return kind


@contextmanager
def seeded(seed: tuple[int, ...]) -> Iterator[None]:
    """Let the generators of the process begin at a seed; afterwards they go on."""
    plain, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002 - Flower's
    words = np.random.SeedSequence(seed).generate_state(8)
    random.seed(words.tobytes())
    np.random.seed(words)  # noqa: NPY002 - Flower's strategies draw from it
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(arrays)  # noqa: NPY002 - see above
