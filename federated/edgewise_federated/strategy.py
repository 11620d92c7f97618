"""Who is asked, and what is made of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from edgewise.ir.op import Array
from edgewise_federated.aggregate import rule_of
from edgewise_federated.config import FederatedConfig
from edgewise_federated.crew import Crew
from edgewise_federated.device import clipped
from edgewise_federated.join import joined
from edgewise_federated.order import Reply
from edgewise_federated.select import chosen, share_of
from edgewise_federated.server import Server
from edgewise_federated.update import Layout

NOISE = 5  # what is drawn for


class Strategy(Protocol):
    """The model of all, and how a round changes it."""

    @property
    def values(self) -> Array:
        """The model of all, flat float32."""

    @property
    def mu(self) -> float:
        """Of fedprox; 0 where nothing pulls."""

    @property
    def control(self) -> Array | None:
        """SCAFFOLD: the control of all, flat; None: there are none."""

    def chosen(self, number: int, crew: Crew) -> list[int]:
        """The devices of a round, in order."""

    def take(self, number: int, replies: Sequence[Reply], crew: Crew) -> None:
        """Let replies into the model: at least one, checked, in order of devices."""

    def take_sum(self, number: int, mean: Array, count: int, crew: Crew) -> None:
        """Let the mean change of ``count`` devices in, where sums alone are seen."""

    def facts(self) -> dict[str, Any]:
        """What has to be so again for a run to go on: plain values."""

    def memory(self) -> dict[str, Array]:
        """What has to be kept for a run that goes on, by name."""

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""


def strategy_of(config: FederatedConfig, layout: Layout, values: Array) -> Strategy:
    """The strategy of a run: named, or an object of Flower's.

    Args:
        config: Of the run.
        layout: What the numbers of the model are.
        values: The model, flat.
    """
    if isinstance(config.strategy, str):
        return Own(config.strategy, config, layout, values)
    # Only runs with such objects want Flower.
    from edgewise_federated.flower.strategies import Guest  # noqa: PLC0415

    return Guest(config.strategy, layout, values, config)


class Own:
    """The strategies that have names.

    Args:
        name: Of the strategy.
        config: Of the run.
        layout: What the numbers of the model are.
        values: The model, flat.
    """

    def __init__(
        self, name: str, config: FederatedConfig, layout: Layout, values: Array
    ) -> None:
        self._config, self._layout = config, layout
        self._server = Server(name, values, config.options, layout)

    @property
    def values(self) -> Array:
        """The model of all, flat float32."""
        return self._server.values

    @property
    def mu(self) -> float:
        """Of fedprox; 0 where nothing pulls."""
        return self._server.options.get("mu", 0.0)

    @property
    def control(self) -> Array | None:
        """SCAFFOLD: the control of all."""
        return self._server.memory.get("control")

    def chosen(self, number: int, crew: Crew) -> list[int]:
        """By chance."""
        return chosen(self._config, crew, number)

    def take(self, number: int, replies: Sequence[Reply], crew: Crew) -> None:
        """Join, and step as the server of the strategy does."""
        updates = [reply.update for reply in replies if reply.update is not None]
        privacy, layout = self._config.privacy, self._layout
        if privacy is not None:
            # Whatever a codec or a liar made of it, no update counts for more.
            bounded = [clipped(layout.filled(u.arrays), privacy.clip) for u in updates]
            total = np.stack(bounded).sum(0, dtype=np.float64)
            self._server.apply(self._noisy(number, total, crew))
        else:
            rule = rule_of(self._server.strategy)
            self._server.apply(joined(rule, layout, updates))
        learned = layout.learned()
        moved = [
            learned.filled(crew.member(reply.device).sends.named(reply.control))
            for reply in replies
            if reply.control is not None
        ]
        if moved:
            self._server.follow(np.stack(moved).sum(0, dtype=np.float64) / crew.size)

    def take_sum(self, number: int, mean: Array, count: int, crew: Crew) -> None:
        """The same, of a mean that nobody could look into."""
        if self._config.privacy is not None:
            mean = self._noisy(number, mean * count, crew)
        self._server.apply(mean)

    def _noisy(self, number: int, total: Array, crew: Crew) -> Array:
        """The mean over the expected number of devices, with noise on the sum."""
        privacy = self._config.privacy
        assert privacy is not None  # noqa: S101 - as asked
        draw = np.random.default_rng((self._config.seed, number, NOISE))
        deviation = privacy.clip * privacy.noise_multiplier
        noise = draw.normal(0.0, deviation, total.size)
        expected = share_of(self._config, crew.size) * crew.size
        return np.asarray((total + noise) / expected)

    def facts(self) -> dict[str, Any]:
        """Its name."""
        return {"strategy": self._server.strategy}

    def memory(self) -> dict[str, Array]:
        """The model, and what the server remembers."""
        return {"model": self._server.values, **self._server.memory}

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""
        self._server.memory = dict(memory)
        self._server.values = self._server.memory.pop("model")
