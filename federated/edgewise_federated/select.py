"""Which devices are asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgewise_federated.config import Device, FederatedConfig

ASK, ANSWER = 1, 2  # what is drawn for


def chosen(config: FederatedConfig, count: int, number: int) -> list[int]:
    """Indices of the devices of a round, in order.

    Under privacy each is in it by its own chance, so that a round may be empty.
    """
    draw = np.random.default_rng((config.seed, number, ASK))
    share = min(config.clients_per_round / count, 1.0)
    if config.privacy is not None:
        return [int(index) for index in np.flatnonzero(draw.random(count) < share)]
    able = _able(config, count)
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


def _able(config: FederatedConfig, count: int) -> Sequence[int]:
    """Devices that are ever there."""
    devices: Sequence[Device] = config.devices or ()
    everyone = list(range(count))
    if not devices:
        return everyone
    return [index for index in everyone if devices[index].available > 0]
