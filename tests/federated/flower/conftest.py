"""A fleet of nodes in this process, behind Flower's messages."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.federated.conftest import World

from edgewise_federated import FederatedConfig, FederatedHistory
from edgewise_federated.flower.client import client_app
from edgewise_federated.flower.loopback import Fault, Loopback
from edgewise_federated.flower.server import over
from edgewise_trainer import optimizers

Over = Callable[..., FederatedHistory]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Flower tells of each round, and collects garbage at each array."""
    logger = logging.getLogger("flwr")
    before = logger.level
    logger.setLevel(logging.ERROR)
    gc.freeze()
    yield
    gc.unfreeze()
    logger.setLevel(before)


def config_of(**settings: Any) -> FederatedConfig:
    """Of runs that are compared with those of a world."""
    given = {"rounds": 3, "clients_per_round": 4, "batch_size": 10, "seed": 0}
    return FederatedConfig(**(given | settings))


@pytest.fixture
def behind(world: World, tmp_path: Path) -> Iterator[Over]:
    """Runs a world's devices behind messages; keyword ``fault`` harms those."""
    grids: list[Loopback] = []

    def run(fault: Fault | None = None, **settings: Any) -> FederatedHistory:
        config = config_of(**settings)
        app = client_app(
            world.model,
            lambda node: world.partitions[node],
            config,
            optimizer=optimizers.SGD(0.1),
            state_dir=tmp_path / "nodes",
        )
        grids.append(Loopback(app, len(world.partitions), fault=fault))
        return over(grids[-1], world.model, config, world.test)

    yield run
    for grid in grids:
        grid.close()
