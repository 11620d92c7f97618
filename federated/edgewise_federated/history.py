"""What happened in a federated run, round by round."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from edgewise.model import Model


class Round(NamedTuple):
    """One round.

    Attributes:
        number: From 1 on.
        clients: Devices that were asked.
        failures: Those of them that gave nothing that could be used.
        loss: Of the evaluation data; the mean of the devices' where there are none;
            None where no device learned.
        accuracy: Of the evaluation data; None where there are none.
        upload_bytes: From all devices to the server.
        download_bytes: From the server to all devices.
        seconds: How long it took.
        epsilon: Privacy spent so far; None: none is promised.
    """

    number: int
    clients: int
    failures: int
    loss: float | None
    accuracy: float | None
    upload_bytes: int
    download_bytes: int
    seconds: float
    epsilon: float | None = None


class FederatedHistory(NamedTuple):
    """A whole run.

    Attributes:
        rounds: What happened in each.
        model: The model of the last.
    """

    rounds: tuple[Round, ...]
    model: Model

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """All rounds as JSON, also written to ``path`` if there is one."""
        text = json.dumps([one._asdict() for one in self.rounds], indent=1)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Accuracy, loss and bytes over the rounds, as a picture.

        Raises:
            ImportError: matplotlib is not installed.
        """
        # Only who draws wants matplotlib.
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415

        figure = Figure(figsize=(8, 3), layout="constrained")
        FigureCanvasAgg(figure)
        numbers = [one.number for one in self.rounds]
        left, right = figure.subplots(1, 2)
        left.plot(numbers, [one.loss for one in self.rounds], label="loss")
        if all(one.accuracy is not None for one in self.rounds):
            left.plot(numbers, [one.accuracy for one in self.rounds], label="accuracy")
        left.set_xlabel("round")
        left.legend()
        total, sums = 0, []
        for one in self.rounds:
            total += one.upload_bytes + one.download_bytes
            sums.append(total / 2**20)
        right.plot(numbers, sums)
        right.set_xlabel("round")
        right.set_ylabel("MiB sent so far")
        figure.savefig(path)
