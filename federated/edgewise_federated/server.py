"""What a server does with the joined change: adds it, or steps as an optimizer would.

Momentum, Adam and Yogi on the server: Reddi et al. (2021); controls: Karimireddy et al.
(2020).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.wanted import want_number
from edgewise_federated.update import Layout

# Numbers of each strategy, and what they are if nothing is said.
OPTIONS: dict[str, dict[str, float]] = {
    "fedavg": {"server_lr": 1.0},
    "fedprox": {"server_lr": 1.0, "mu": 0.1},
    "scaffold": {"server_lr": 1.0},
    "fedavgm": {"server_lr": 1.0, "momentum": 0.9},
    "fedadam": {"server_lr": 0.03, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3},
    "fedyogi": {"server_lr": 0.03, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3},
    "fedmedian": {"server_lr": 1.0},
    "trimmed_mean": {"server_lr": 1.0},
    "krum": {"server_lr": 1.0},
}


def options_of(strategy: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """All numbers of a strategy.

    Raises:
        ConfigError: It has no such number, or one is none.
    """
    known = OPTIONS[strategy]
    odd = sorted((given or {}).keys() - known.keys())
    if odd:
        raise ConfigError(
            f"options: {strategy} has no {', '.join(odd)}; it has {', '.join(known)}"
        )
    for name, value in (given or {}).items():
        want_number(name, value)
    return {**known, **(given or {})}


class Server:
    """The model of all, flat, and what the server remembers.

    Statistics of batch norms become the mean of those of the devices, whatever the
    strategy does with what is trained.

    Args:
        strategy: Its name.
        values: Where it begins.
        options: Numbers of the strategy.
        layout: What the numbers are; None: all are trained.

    Attributes:
        values: The parameters.
        memory: Arrays by name: moments, controls.
    """

    def __init__(
        self,
        strategy: str,
        values: Array,
        options: Mapping[str, float] | None,
        layout: Layout | None = None,
    ) -> None:
        self.strategy, self.values = strategy, values.astype(np.float32)
        size = values.size
        self._trained = layout.trained if layout else size
        self._positive = layout.positive if layout else size
        self.options = options_of(strategy, options)
        names = {
            "fedavgm": ("velocity",),
            "fedadam": ("first", "second"),
            "fedyogi": ("first", "second"),
            "scaffold": ("control",),
        }.get(strategy, ())
        self.memory = {name: np.zeros(self._trained, np.float32) for name in names}

    def apply(self, change: Array) -> None:
        """Take a joined change."""
        change = change.astype(np.float32)
        step = np.float32(self.options["server_lr"]) * self._step(
            change[: self._trained]
        )
        moved = self.values + np.concatenate([step, change[self._trained :]])
        moved[self._positive :].clip(min=0, out=moved[self._positive :])
        self.values = moved

    def _step(self, change: Array) -> Array:
        """What the strategy makes of the change of what is trained."""
        if self.strategy == "fedavgm":
            kept = np.float32(self.options["momentum"])
            self.memory["velocity"] = change = kept * self.memory["velocity"] + change
        elif self.strategy in ("fedadam", "fedyogi"):
            change = self._adaptive(change)
        return change

    def follow(self, change: Array) -> None:
        """Take the mean change of all controls."""
        self.memory["control"] = (self.memory["control"] + change).astype(np.float32)

    def _adaptive(self, change: Array) -> Array:
        b1, b2 = self.options["beta1"], self.options["beta2"]
        first = np.asarray(b1 * self.memory["first"] + (1 - b1) * change)
        square, second = np.square(change), np.asarray(self.memory["second"])
        if self.strategy == "fedadam":
            second = np.asarray(b2 * second + (1 - b2) * square)
        else:
            second = np.asarray(second - (1 - b2) * square * np.sign(second - square))
        self.memory = {
            "first": first.astype(np.float32),
            "second": second.astype(np.float32),
        }
        return np.asarray(first / (np.sqrt(second) + self.options["tau"]))
