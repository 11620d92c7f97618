"""What a server keeps in a folder: its run, its history, and in the end its model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from edgewise.errors import CheckpointError
from edgewise.format.whole import replace
from edgewise_federated.history import FederatedHistory, Round


class Folder(NamedTuple):
    """Where it is.

    Attributes:
        path: The folder; the loop keeps its run there, too.
    """

    path: Path

    @property
    def home(self) -> Path:
        """Flower's own files, and logs."""
        return self.path / "flower"

    @property
    def database(self) -> Path:
        """Nodes and runs, as Flower knows them."""
        return self.path / "superlink.db"

    @property
    def history(self) -> Path:
        """All rounds, written anew after each."""
        return self.path / "history.json"

    @property
    def model(self) -> Path:
        """The model of all, written after the last round."""
        return self.path / "model.ew"

    def rounds(self) -> tuple[Round, ...]:
        """What is done.

        Raises:
            CheckpointError: The history is damaged.
        """
        try:
            rows = json.loads(self.history.read_text("utf-8"))
            return tuple(Round(**row) for row in rows)
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f"{self.history}: damaged: {error}") from error

    def note(self, one: Round) -> None:
        """Add a round that is done; later ones are of a run that was here before."""
        before = [old for old in self.rounds() if old.number < one.number]
        self._write([*before, one])

    def finish(self, history: FederatedHistory) -> None:
        """Write a whole run, and its model."""
        self._write(history.rounds)
        history.model.save(self.model)

    def _write(self, rounds: Sequence[Round]) -> None:
        text = json.dumps([one._asdict() for one in rounds], indent=1)
        self.path.mkdir(parents=True, exist_ok=True)
        replace(self.history, lambda file: file.write(text.encode()))
