"""Which devices are asked, and for how much."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from edgewise.errors import FederatedError
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.order import Member

ASK, ANSWER = 1, 2  # what is drawn for
ROOM = 0.9  # of the deadline is for learning, the rest for the way
SLACK = 1e-9  # of a pass: what rounding may take off one that just fits


def passes(member: Member, seconds: float) -> int:
    """Passes that a device is asked for: as many as it has time for; 0: not at all.

    Partial work of slow devices is FedProx's way with them (Li et al., 2020); to wait
    for them, or to drop what they did, would leave out what they alone know.
    """
    if not member.examples:
        return 0
    most = ROOM * seconds * member.speed / member.examples
    return int(min(member.epochs, most + SLACK))


def chosen(config: FederatedConfig, crew: Crew, number: int) -> list[int]:
    """The devices of a round, in order.

    Devices that are seldom there are drawn less often, and those that have no time for
    one pass never.  Under privacy each is in a round by the same chance, so that it may
    be empty.

    Raises:
        FederatedError: Nobody can be asked.
    """
    draw = np.random.default_rng((config.seed, number, ASK))
    able = _able(config, crew, ())
    if config.privacy is not None:
        drawn = np.flatnonzero(draw.random(crew.size) < share_of(config, crew.size))
        return [int(device) for device in drawn if int(device) in set(able)]
    if not able:
        raise FederatedError(
            f"round {number}: no device can be asked: none is there, or none has"
            " examples and the time for one pass within"
            f" deadline_s={config.deadline_s:g}"
        )
    return sorted(_drawn(draw, crew, able, config.clients_per_round))


def someone(
    config: FederatedConfig, crew: Crew, number: int, busy: Collection[int]
) -> int | None:
    """One more device for an order, that is not busy; None: there is none."""
    draw = np.random.default_rng((config.seed, number, ASK))
    able = _able(config, crew, busy)
    return _drawn(draw, crew, able, 1)[0] if able else None


def answers(config: FederatedConfig, number: int, client: int) -> bool:
    """Whether a device is there when it is asked."""
    if config.devices is None:
        return True
    draw = np.random.default_rng((config.seed, number, client, ANSWER))
    return bool(draw.random() < config.devices[client].available)


def share_of(config: FederatedConfig, count: int) -> float:
    """The chance of each device to be in a round."""
    return min(config.clients_per_round / count, 1.0)


def _able(config: FederatedConfig, crew: Crew, busy: Collection[int]) -> list[int]:
    """Devices that can be asked and have the time."""
    return [
        device
        for device in crew.present(config.clients_per_round)
        if device not in busy and passes(crew.member(device), config.deadline_s)
    ]


def _drawn(
    draw: np.random.Generator, crew: Crew, able: Sequence[int], most: int
) -> list[int]:
    """Some of the devices, each by how often it is there."""
    there = np.asarray([crew.member(device).available for device in able])
    chances = None if (there == there[0]).all() else there / there.sum()
    size = min(most, len(able))
    return [int(i) for i in draw.choice(able, size, replace=False, p=chances)]
