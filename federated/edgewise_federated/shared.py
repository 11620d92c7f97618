"""What of a model is shared, and what stays on each device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.config import FederatedConfig
from edgewise_federated.norms import followed, numbers, want_no_noise
from edgewise_federated.update import Layout
from edgewise_trainer import Trainer
from edgewise_trainer.selection import selected


class Shared(NamedTuple):
    """A model as a federated run sees it.

    Attributes:
        layout: Of what travels.
        values: The numbers of that, flat float32.
        personal: Names of what stays on each device.
    """

    layout: Layout
    values: Array
    personal: tuple[str, ...]


def shared(model: Model, trainer: Trainer, config: FederatedConfig) -> Shared:
    """What of a model travels in a run.

    Raises:
        ConfigError: Nothing does, or what must not.
    """
    module = model.module
    personal = () if config.personal is None else selected(module, config.personal)
    layout = _layout(model, trainer, personal)
    if not layout.trained:
        raise ConfigError(f"personal={config.personal!r}: nothing is left to share")
    want_no_noise(config, layout.statistics)
    personal = (*personal, *chain(*followed(module, personal)))
    return Shared(layout, layout.flat(numbers(model)).astype(np.float32), personal)


def _layout(model: Model, trainer: Trainer, personal: Collection[str]) -> Layout:
    """What travels: parameters, then the statistics of batch norms."""
    travels = [name for name in trainer.trained if name not in personal]
    arrays = numbers(model)
    means, variances = followed(model.module, travels)

    def shapes(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        return {name: arrays[name].shape for name in names}

    return Layout(shapes(travels), shapes(means), shapes(variances))
