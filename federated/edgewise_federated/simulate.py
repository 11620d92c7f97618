"""Federated rounds over simulated devices, in one process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise.errors import ConfigError
from edgewise.model import Model
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.fleet import Fleet
from edgewise_federated.history import FederatedHistory
from edgewise_federated.rounds import Hook, Loop
from edgewise_federated.server import Server
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer
from edgewise_trainer.form import statistics
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD, Optimizer
from edgewise_trainer.selection import selected


def simulate(
    model: Model,
    partitions: Sequence[Data],
    config: FederatedConfig | None = None,
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: Optimizer | None = None,
    evaluate: Data | None = None,
    reply_hook: Hook | None = None,
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

    Raises:
        FederatedError: Fewer devices gave an update than the quorum wants.
        CheckpointError: ``checkpoint_dir`` holds a damaged run, or one of another kind.
    """
    config = config or FederatedConfig()
    optimizer = optimizer or SGD(1e-2)
    module = model.module
    personal = () if config.personal is None else selected(module, config.personal)
    trainer = Trainer(model, loss, optimizer)
    parameters = trainer.parameters()
    _want_no_statistics(model, trainer)
    travels = [name for name in trainer.trained if name not in personal]
    if not travels:
        raise ConfigError(f"personal={config.personal!r}: nothing is left to share")
    layout = Layout({name: parameters[name].shape for name in travels})
    fleet = Fleet(model, partitions, config, loss, optimizer, personal)
    values = layout.flat(parameters).astype(np.float32)
    server = Server(config.strategy, values, config.options)
    loop = Loop(config, fleet, server, layout, trainer, evaluate, reply_hook)
    return loop.run()


def _want_no_statistics(model: Model, trainer: Trainer) -> None:
    """Raise for batch norms in training, whose statistics no strategy joins.

    Raises:
        ConfigError: There are some.
    """
    found = statistics(model.module)
    if found and set(trainer.trained) & set(selected(model.module, "norm")):
        raise ConfigError(
            f"got a model whose batch norms keep {min(found)!r} and others of each"
            " device, which are not joined; want one without batch norms, or with"
            " those folded into its convolutions"
        )
