"""What the server runs in Flower's place for it: our loop, over a SuperLink's nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from edgewise.model import Model
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.flower.crew import Nodes
from edgewise_federated.history import FederatedHistory
from edgewise_federated.rounds import Callback, Loop
from edgewise_federated.shared import shared
from edgewise_federated.strategy import strategy_of
from edgewise_trainer import Trainer
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD

# What Flower's run config may say.
TOLD = ("rounds", "clients_per_round", "local_epochs", "deadline_s", "quorum", "seed")


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
