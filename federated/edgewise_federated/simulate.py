"""Federated rounds over simulated devices, in one process."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.model import Model
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.fleet import Fleet
from edgewise_federated.history import FederatedHistory
from edgewise_federated.replies import Hook
from edgewise_federated.rounds import Callback, Loop
from edgewise_federated.shared import shared
from edgewise_federated.strategy import strategy_of
from edgewise_trainer import Trainer
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD, Optimizer


def simulate(
    model: Model,
    partitions: Sequence[Data],
    config: FederatedConfig | None = None,
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: Optimizer | None = None,
    evaluate: Data | None = None,
    reply_hook: Hook | None = None,
    callbacks: Sequence[Callback] = (),
) -> FederatedHistory:
    """Train a model over devices that keep their data.

    Args:
        model: Where it begins.
        partitions: (inputs, targets) of each device.
        config: How.
        loss: What each device makes small.
        optimizer: How; plain descent at 0.01 if there is none.
        evaluate: (inputs, targets) on which the model of each round is evaluated.
        reply_hook: Sees each update as ``(round, device, update)`` before it is used
            and gives it back, another, or None for a device that vanished; it may
            raise.  Failures are counted.
        callbacks: Are told each round when it is over, and kept if it is.

    Raises:
        FederatedError: Fewer devices gave an update than the quorum wants.
        CheckpointError: ``checkpoint_dir`` holds a damaged run, or one of another kind.
    """
    config = config or FederatedConfig()
    optimizer = optimizer or SGD(1e-2)
    trainer = Trainer(model, loss, optimizer)
    layout, values, personal = shared(model, trainer, config)
    fleet = Fleet(model, partitions, config, layout, loss, optimizer, personal)
    strategy = strategy_of(config, layout, values)
    loop = Loop(config, fleet, strategy, layout, trainer, evaluate, reply_hook)
    return loop.run(callbacks)._replace(own=fleet.own())
