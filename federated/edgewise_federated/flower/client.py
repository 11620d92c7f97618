"""What a device runs in Flower's place for it: it answers our server, and any other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from edgewise import _env
from edgewise.model import Model
from edgewise_federated.config import FederatedConfig
from edgewise_federated.flower.messages import (
    MEMBER,
    ORDER,
    answer_content,
    member_content,
    order_of,
)
from edgewise_federated.flower.phases import (
    KEYS,
    REVEAL,
    SHARES,
    answered,
    boxes_in,
)
from edgewise_federated.flower.stock import evaluated, trained
from edgewise_federated.resident import Resident, Source, state_folder
from edgewise_federated.secure.vault import Vault
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD, Optimizer


def client_app(
    model: Model,
    data: Source,
    config: FederatedConfig | None = None,
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: Optimizer | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    identities: Mapping[int, bytes] | None = None,
) -> ClientApp:
    """What a device runs: for our server app, and for any of Flower's strategies.

    Args:
        model: The model, as the server has it.
        data: Gives (inputs, targets) of a node, by its ``partition-id`` or, where it
            has none, by Flower's number of it.
        config: How, as the server has it; what it says of privacy, sums and codecs
            holds whatever the server asks.
        loss: What is made small.
        optimizer: How; plain descent at 0.01 if there is none.
        state_dir: Where the device keeps what stays with it: personal parts, what its
            codec lost, controls, keys. A node's own ``state-dir`` comes first; without
            any, a folder beside ``checkpoint_dir``, or in the user's state.
        identities: Secure aggregation: public identity keys of all nodes (Ed25519, 32
            bytes), by Flower's numbers of them. None: a node trusts the key that it
            sees first for each of the others, and no other from then on.
    """
    config, optimizer = config or FederatedConfig(), optimizer or SGD(1e-2)
    home = None if state_dir is None else os.fspath(state_dir)
    known = None
    if identities is not None:
        known = {str(node): key for node, key in identities.items()}
    made: dict[Path, Resident] = {}

    def side(context: Context) -> Side:
        given = context.node_config.get("state-dir", home)
        folder = state_folder(given, config, _env.state_dir() / "federated")
        if folder not in made:
            made[folder] = Resident(model, data, config, loss, optimizer, folder)
        return Side(made[folder], context, config, known)

    app = ClientApp()
    app.query(_action(MEMBER))(lambda message, context: side(context).member(message))
    app.train(_action(ORDER))(lambda message, context: side(context).order(message))
    for step in (KEYS, SHARES, REVEAL):
        app.query(_action(step))(lambda message, context: side(context).step(message))
    app.train()(lambda message, context: side(context).train(message))
    app.evaluate()(lambda message, context: side(context).evaluate(message))
    return app


class Side:
    """A device, as one message finds it.

    Args:
        resident: Learns, and remembers.
        context: Flower's, of the message.
        config: Of the device.
        known: Identity keys of all nodes; None: those seen first.
    """

    def __init__(
        self,
        resident: Resident,
        context: Context,
        config: FederatedConfig,
        known: Mapping[str, bytes] | None,
    ) -> None:
        self._resident, self._config = resident, config
        self._run = f"flower-{context.run_id}"
        self._node = int(context.node_config.get("partition-id", context.node_id))
        self._vault = Vault(resident.folder(self._node) / "sums", known)

    def member(self, message: Message) -> Message:
        """What the device says of itself."""
        hidden = self._config.secure_aggregation
        identity = self._vault.identity() if hidden else b""
        layout = self._resident.layout.hash
        content = member_content(self._resident.member(self._node), layout, identity)
        return Message(content, reply_to=message)

    def order(self, message: Message) -> Message:
        """What comes of an order of our loop."""
        order, told = order_of(message.content, self._resident.layout.hash)
        mask = None
        if order.sums is not None:
            boxes = boxes_in(message.content)
            mask = self._vault.masks(told.run, order.number, boxes)
        answer = self._resident.answer(self._node, order, told, mask)
        return Message(answer_content(answer, order.number), reply_to=message)

    def step(self, message: Message) -> Message:
        """A step of secure sums."""
        return answered(message, self._vault)

    def train(self, message: Message) -> Message:
        """What a strategy of Flower's gets that runs by itself."""
        epochs = self._resident.member(self._node).epochs
        return trained(self._resident, self._node, message, self._run, epochs)

    def evaluate(self, message: Message) -> Message:
        """Scores, for the same."""
        return evaluated(self._resident, self._node, message)


def _action(kind: str) -> str:
    """The part of a message's type by which Flower finds who answers it."""
    return kind.partition(".")[2]
