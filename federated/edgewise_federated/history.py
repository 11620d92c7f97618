"""What happened in a federated run, round by round."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.tools.text import size_text
from edgewise_trainer.values import given


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
        waited: Seconds by the clock of the devices: in a simulation those that devices
            would have taken.
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
    waited: float = 0.0

    def __str__(self) -> str:
        """One line."""
        parts = [f"{self.clients - self.failures} of {self.clients} devices"]
        for name in ("accuracy", "loss", "epsilon"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} {value:.4f}")
        parts.append(f"{size_text(self.upload_bytes)} up")
        return f"round {self.number}: {', '.join(parts)}"


class FederatedHistory(NamedTuple):
    """A whole run.

    Attributes:
        rounds: What happened in each.
        model: The model of the last.
        own: In a simulation, what stays with each device by name; nothing with one
            that never learned.
    """

    rounds: tuple[Round, ...]
    model: Model
    own: tuple[Mapping[str, Array], ...] = ()

    def model_of(self, device: int) -> Model:
        """The model as a device of a simulation has it, with what is its own.

        Raises:
            ConfigError: There is no such device.
        """
        if not 0 <= device < len(self.own):
            raise ConfigError(
                f"got device {device}; want 0 to {len(self.own) - 1} of a simulation"
            )
        return Model(given(self.model.module, self.own[device]))

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

        figure = Figure(figsize=(9, 3.2), layout="constrained")
        FigureCanvasAgg(figure)
        numbers = [one.number for one in self.rounds]
        left, right = figure.subplots(1, 2)
        for name in ("accuracy", "loss"):
            values = [getattr(one, name) for one in self.rounds]
            if any(value is not None for value in values):
                known = [np.nan if value is None else value for value in values]
                left.plot(numbers, known, marker=".", label=name)
        for name in ("upload", "download"):
            sums = np.cumsum([getattr(one, f"{name}_bytes") for one in self.rounds])
            right.plot(numbers, sums / 2**20, marker=".", label=name)
        right.set_ylabel("MiB so far")
        for axis in (left, right):
            axis.set_xlabel("round")
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.grid(alpha=0.3)
            axis.legend()
        figure.savefig(path)
