"""Flower's two apps: what devices run, and what the server runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from edgewise import _env
from edgewise.model import Model
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.flower.crew import Nodes
from edgewise_federated.flower.messages import (
    answer_content,
    member_content,
    order_of,
)
from edgewise_federated.flower.stock import evaluated, trained
from edgewise_federated.history import FederatedHistory
from edgewise_federated.resident import Resident, Source, state_folder
from edgewise_federated.rounds import Callback, Loop
from edgewise_federated.shared import shared
from edgewise_federated.strategy import strategy_of
from edgewise_trainer import Trainer
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD, Optimizer

TOLD = ("rounds", "clients_per_round", "local_epochs", "deadline_s", "quorum", "seed")


def client_app(
    model: Model,
    data: Source,
    config: FederatedConfig | None = None,
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: Optimizer | None = None,
    state_dir: str | os.PathLike[str] | None = None,
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
            codec lost, controls. A node's own ``state-dir`` comes first; without any, a
            folder beside ``checkpoint_dir``, or in the user's state.

    Raises:
        ConfigError: Nothing of the model would be shared, or what must not.
    """
    config, optimizer = config or FederatedConfig(), optimizer or SGD(1e-2)
    residents: dict[Path, Resident] = {}

    def resident(context: Context) -> Resident:
        given = context.node_config.get("state-dir", state_dir and os.fspath(state_dir))
        folder = state_folder(given, config, _env.state_dir() / "federated")
        if folder not in residents:
            residents[folder] = Resident(model, data, config, loss, optimizer, folder)
        return residents[folder]

    app = ClientApp()

    @app.query("member")
    def member(message: Message, context: Context) -> Message:
        here = resident(context)
        found = here.member(node_of(context))
        content = member_content(found, here.layout.hash, b"")
        return Message(content, reply_to=message)

    @app.train("order")
    def order(message: Message, context: Context) -> Message:
        here = resident(context)
        asked, told = order_of(message.content, here.layout.hash)
        answer = here.answer(node_of(context), asked, told)
        return Message(answer_content(answer, asked.number), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        here, node = resident(context), node_of(context)
        return trained(here, node, message, context, config.local_epochs)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return evaluated(resident(context), node_of(context), message)

    return app


def server_app(
    model: Model,
    config: FederatedConfig | None = None,
    evaluate: Data | None = None,
    *,
    loss: str | Loss = "cross_entropy",
    callbacks: Sequence[Callback] = (),
    done: Callable[[FederatedHistory], object] | None = None,
) -> ServerApp:
    """What a server runs: our loop, over the nodes of its SuperLink.

    Args:
        model: Where it begins.
        config: How; ``rounds``, ``clients-per-round``, ``local-epochs``,
            ``deadline-s``, ``quorum`` and ``seed`` of Flower's run config come first.
        evaluate: (inputs, targets) on which the model of each round is evaluated.
        loss: What is evaluated.
        callbacks: Are told each round when it is over, and kept if it is.
        done: Is given the history, with the model, at the end.

    Raises:
        ConfigError: Nothing of the model would be shared, or what must not.
    """
    given = config or FederatedConfig()
    shared(model, Trainer(model, loss, SGD(1e-2)), given)
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        history = over(
            grid, model, told(given, context.run_config), evaluate, loss, callbacks
        )
        if done is not None:
            done(history)

    return app


def over(
    grid: Grid,
    model: Model,
    config: FederatedConfig,
    evaluate: Data | None = None,
    loss: str | Loss = "cross_entropy",
    callbacks: Sequence[Callback] = (),
) -> FederatedHistory:
    """A run over the nodes of a Grid; see ``simulate`` and ``server_app``.

    Raises:
        FederatedError: Too few nodes came, or answered.
        CheckpointError: ``checkpoint_dir`` holds a damaged run, or one of another kind.
    """
    trainer = Trainer(model, loss, SGD(1e-2))
    layout, values, _ = shared(model, trainer, config)
    crew = Nodes(grid, config, layout)
    strategy = strategy_of(config, layout, values)
    loop = Loop(config, crew, strategy, layout, trainer, evaluate, None)
    return loop.run(callbacks)


def told(config: FederatedConfig, run: Mapping[str, Any]) -> FederatedConfig:
    """A config with what the run config of Flower says otherwise.

    Raises:
        ConfigError: It says what cannot be.
    """
    names = {name.replace("_", "-"): name for name in TOLD}
    kinds = {field.name: field.type for field in fields(config)}
    changes: dict[str, Any] = {
        names[key]: float(value) if kinds[names[key]] == "float" else value
        for key, value in run.items()
        if key in names
    }
    return replace(config, **changes)


def node_of(context: Context) -> int:
    """The number by which the data of a node are called."""
    return int(context.node_config.get("partition-id", context.node_id))
