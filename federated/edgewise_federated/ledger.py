"""What is kept of a run after each round, and how a killed one goes on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from edgewise.errors import CheckpointError
from edgewise.ir.op import Array
from edgewise_federated import keep
from edgewise_federated.config import FederatedConfig
from edgewise_federated.history import Round

logger = logging.getLogger(__name__)

# What may be another when a run goes on.
FREE = {"rounds", "checkpoint_dir", "quorum"}


class Owner(Protocol):
    """Who has something that a run needs to go on."""

    def memory(self) -> dict[str, Array]:
        """What has to be kept, by name."""

    def remember(self, memory: Mapping[str, Array]) -> None:
        """Take back what ``memory`` gave."""


class Ledger:
    """Writes a run down, if it has a folder.

    Args:
        config: What the run is asked for.
        owners: Who remembers something, by name; takes it back in this order.
        size: How many devices there are.
        layout: Hash of what the numbers of the model are.
    """

    def __init__(
        self,
        config: FederatedConfig,
        owners: Mapping[str, Owner],
        size: int,
        layout: int,
    ) -> None:
        self._config, self._owners = config, owners
        self._about = {"fleet": size, "layout": layout}

    def keep(self, rounds: Sequence[Round]) -> None:
        """Write everything after a round.

        Raises:
            CheckpointError: It cannot be written.
        """
        if self._config.checkpoint_dir is None:
            return
        arrays = {
            f"{owner}/{name}": array
            for owner, one in self._owners.items()
            for name, array in one.memory().items()
        }
        facts = {"run": self._facts(), "rounds": [list(one) for one in rounds]}
        keep.save(self._config.checkpoint_dir, keep.Kept(facts, arrays))

    def resume(self) -> list[Round]:
        """The rounds that are done, after whose last everybody remembers what it did.

        Raises:
            CheckpointError: What is kept is damaged, or of another run.
        """
        folder = self._config.checkpoint_dir
        kept = None if folder is None else keep.load(folder)
        if kept is None:
            return []
        if kept.facts.get("run") != self._facts():
            raise CheckpointError(
                f"{folder}: holds a run of another kind: {kept.facts.get('run')};"
                f" want {self._facts()}"
            )
        for owner, one in self._owners.items():
            one.remember(keep.part_of(kept.arrays, owner))
        rounds = [Round(*row) for row in kept.facts["rounds"]]
        logger.info("%s: goes on after round %d", folder, len(rounds))
        return rounds

    def _facts(self) -> dict[str, Any]:
        """What a run has to be asked again to go on."""
        names = [f.name for f in fields(self._config) if f.name not in FREE]
        facts = {name: repr(getattr(self._config, name)) for name in names}
        return facts | self._about
