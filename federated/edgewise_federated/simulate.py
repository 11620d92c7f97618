"""Federated rounds over simulated devices, in one process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from edgewise.errors import ConfigError
from edgewise.model import Model
from edgewise_federated.client import Data
from edgewise_federated.config import FederatedConfig
from edgewise_federated.fleet import Fleet
from edgewise_federated.history import FederatedHistory
from edgewise_federated.norms import followed, numbers, want_no_noise
from edgewise_federated.replies import Hook
from edgewise_federated.rounds import Callback, Loop
from edgewise_federated.strategy import strategy_of
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer
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
    module = model.module
    personal = () if config.personal is None else selected(module, config.personal)
    trainer = Trainer(model, loss, optimizer)
    layout = _layout(model, trainer, personal)
    if not layout.trained:
        raise ConfigError(f"personal={config.personal!r}: nothing is left to share")
    want_no_noise(config, layout.statistics)
    personal = (*personal, *chain(*followed(module, personal)))
    fleet = Fleet(model, partitions, config, layout, loss, optimizer, personal)
    values = layout.flat(numbers(model)).astype(np.float32)
    strategy = strategy_of(config, layout, values)
    loop = Loop(config, fleet, strategy, layout, trainer, evaluate, reply_hook)
    return loop.run(callbacks)


def _layout(model: Model, trainer: Trainer, personal: Collection[str]) -> Layout:
    """What travels: parameters, then the statistics of batch norms."""
    travels = [name for name in trainer.trained if name not in personal]
    arrays = numbers(model)
    means, variances = followed(model.module, travels)

    def shapes(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        return {name: arrays[name].shape for name in names}

    return Layout(shapes(travels), shapes(means), shapes(variances))
