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

# What may be another when a run goes on; a strategy says itself what it is.
FREE = {"rounds", "checkpoint_dir", "quorum", "strategy"}


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
        facts: What has to be so again for a run to go on, beside what it is asked for.
    """

    def __init__(
        self,
        config: FederatedConfig,
        owners: Mapping[str, Owner],
        facts: Mapping[str, Any],
    ) -> None:
        self._config, self._owners = config, owners
        names = [field.name for field in fields(config) if field.name not in FREE]
        asked = {name: repr(getattr(config, name)) for name in names}
        self._facts = {**asked, **facts}

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
        facts = {"run": self._facts, "rounds": [list(one) for one in rounds]}
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
        if kept.facts.get("run") != self._facts:
            raise CheckpointError(
                f"{folder}: holds a run of another kind: {kept.facts.get('run')};"
                f" want {self._facts}"
            )
        try:
            for owner, one in self._owners.items():
                one.remember(keep.part_of(kept.arrays, owner))
            rounds = [Round(*row) for row in kept.facts["rounds"]]
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"{folder}: damaged: {error!r}") from error
        logger.info("%s: goes on after round %d", folder, len(rounds))
        return rounds
