"""Which devices are asked."""

from __future__ import annotations

import numpy as np

from edgewise.errors import FederatedError
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew

ASK, ANSWER = 1, 2  # what is drawn for


def chosen(config: FederatedConfig, crew: Crew, number: int) -> list[int]:
    """The devices of a round, in order.

    Under privacy each is in it by its own chance, so that a round may be empty.

    Raises:
        FederatedError: Nobody can be asked.
    """
    draw = np.random.default_rng((config.seed, number, ASK))
    if config.privacy is not None:
        share = share_of(config, crew.size)
        return [int(index) for index in np.flatnonzero(draw.random(crew.size) < share)]
    able = crew.present(config.clients_per_round)
    if not able:
        raise FederatedError(f"round {number}: no device is there to be asked")
    size = min(config.clients_per_round, len(able))
    return sorted(int(index) for index in draw.choice(able, size, replace=False))


def answers(config: FederatedConfig, number: int, client: int) -> bool:
    """Whether a device is there when it is asked."""
    if config.devices is None:
        return True
    draw = np.random.default_rng((config.seed, number, client, ANSWER))
    return bool(draw.random() < config.devices[client].available)


def share_of(config: FederatedConfig, count: int) -> float:
    """The chance of each device to be in a round."""
    return min(config.clients_per_round / count, 1.0)
