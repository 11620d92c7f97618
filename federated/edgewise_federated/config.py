"""What a federated run is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from edgewise.errors import ConfigError
from edgewise.wanted import want_count, want_kinds, want_number, want_positive

STRATEGIES = (
    "fedavg",
    "fedprox",
    "scaffold",
    "fedadam",
    "fedyogi",
    "fedavgm",
    "fedmedian",
    "trimmed_mean",
    "krum",
)

MODES = ("sync", "buffered")

# What has to see each update by itself, or sends more than its change.
SEES_ONE = ("fedmedian", "trimmed_mean", "krum", "scaffold")


class FlowerStrategy(Protocol):
    """A strategy object of Flower's: one of ``flwr.serverapp.strategy``."""

    def configure_train(
        self, server_round: int, arrays: Any, config: Any, grid: Any
    ) -> Iterable[Any]:
        """Choose the devices of a round."""

    def aggregate_train(
        self, server_round: int, replies: Iterable[Any]
    ) -> tuple[Any, Any]:
        """Join what came of them."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """Client-level differential privacy (McMahan et al., 2018).

    Attributes:
        clip: Largest norm of what a device sends.
        noise_multiplier: Deviation of the noise, as a multiple of ``clip``.
        delta: The chance that the promise does not hold.
    """

    clip: float
    noise_multiplier: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        """Refuse what promises nothing."""
        want_positive("clip", self.clip)
        want_positive("noise_multiplier", self.noise_multiplier)
        want_number("delta", self.delta, "a chance from 0 to 1", lambda x: 0 < x < 1)


@dataclass(frozen=True, slots=True)
class Device:
    """What a device can do.

    Attributes:
        speed: How fast it learns: 1.0 passes over 1,000 examples in a second of the
            simulation's clock.
        available: Chance that it answers a round.
        trainable: What it trains, as ``Trainer`` has it.
        local_epochs: Passes over its data; None: as the run has it.
    """

    speed: float = 1.0
    available: float = 1.0
    trainable: str | Sequence[str] = "all"
    local_epochs: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no device is."""
        want_positive("speed", self.speed)
        _want_share("available", self.available)
        if self.local_epochs is not None:
            want_count("local_epochs", self.local_epochs)


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedConfig:
    """A federated run.

    Attributes:
        rounds: How many.
        clients_per_round: Devices asked in each; under ``privacy`` on average.
        local_epochs: Passes of a device over its data in a round.
        batch_size: Examples of a step.
        strategy: How updates become one: fedavg, fedprox, scaffold, fedadam, fedyogi,
            fedavgm, fedmedian, trimmed_mean, krum; or an object of Flower's
            (``flwr.serverapp.strategy``), which then chooses the devices, too.
        options: Numbers of the strategy: see ``edgewise_federated.server``.
        codec: How updates travel: float32, float16, int8, int4, topk:SHARE.
        personal: What stays on the device: as ``trainable`` of a Trainer names it.
        secure_aggregation: Whether the server sees the sum of updates alone: at least
            three devices, more than half of whom stay to the end of a round.
        privacy: Differential privacy; None: none.
        deadline_s: Seconds in which a device that is asked has to answer; who has not
            by then has failed, and who cannot learn so fast is asked for less.
        quorum: Share of the devices asked without which a round fails.
        max_norm: Largest norm of an update that is accepted; None: any.
        checkpoint_dir: Where a run is kept so that it can go on; None: nowhere.
        devices: What each can do; None: all the same, and in a simulation never late.
        mode: "sync": devices are asked together, and the model steps when they are
            done. "buffered": devices run all the time, ``clients_per_round`` of them at
            once, and the model steps whenever ``buffer_size`` updates have come, which
            is called a round (FedBuff).
        buffer_size: Updates of a step; None: half of ``clients_per_round``.
        seed: Decides all that is drawn.
    """

    rounds: int = 10
    clients_per_round: int = 10
    local_epochs: int = 1
    batch_size: int = 32
    strategy: str | FlowerStrategy = "fedavg"
    options: Mapping[str, float] | None = None
    codec: str = "float32"
    personal: str | Sequence[str] | None = None
    secure_aggregation: bool = False
    privacy: Privacy | None = None
    deadline_s: float = 60.0
    quorum: float = 0.5
    max_norm: float | None = None
    checkpoint_dir: str | None = None
    devices: Sequence[Device] | None = None
    mode: str = "sync"
    buffer_size: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, and what does not go together."""
        for name in ("rounds", "clients_per_round", "local_epochs", "batch_size"):
            want_count(name, getattr(self, name))
        want_count("seed", self.seed, 0)
        want_positive("deadline_s", self.deadline_s)
        _want_share("quorum", self.quorum)
        if self.max_norm is not None:
            want_positive("max_norm", self.max_norm)
        if self.devices is not None:
            want_kinds("devices", self.devices, Device, "a Device for each")
        if self.privacy is not None and not isinstance(self.privacy, Privacy):
            raise ConfigError(f"privacy={self.privacy!r}: want a Privacy, or None")
        if not isinstance(self.strategy, str):
            self._want_guest(self.strategy)
        elif self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise ConfigError(f"strategy={self.strategy!r}: want one of {known}")
        if self.secure_aggregation:
            self._want_sums()
        self._want_mode()
        self._want_alike()

    @property
    def buffer(self) -> int:
        """Updates of a step of a buffered run."""
        return self.buffer_size or (self.clients_per_round + 1) // 2

    def _want_guest(self, strategy: FlowerStrategy) -> None:
        """Raise for what is no strategy, and what an object of Flower's decides."""
        name, parts = type(strategy).__name__, ("configure_train", "aggregate_train")
        if not all(hasattr(strategy, part) for part in parts):
            raise ConfigError(
                f"strategy={strategy!r}: want a name ({', '.join(STRATEGIES)}), or an"
                " object of flwr.serverapp.strategy"
            )
        if self.options is not None:
            raise ConfigError(f"options: those of {name} are given where it is made")
        if self.privacy is not None:
            raise ConfigError(
                f"privacy with {name}: devices are drawn and sums made noisy by chance"
                " that a strategy of Flower's does not know; want a named strategy, or"
                " its own DifferentialPrivacyServerSide... around it"
            )

    def _seeing(self) -> list[str]:
        """The strategy, if it has to see each update by itself, as it is given."""
        if not isinstance(self.strategy, str):
            return [f"strategy={type(self.strategy).__name__}"]
        return [f"strategy={self.strategy!r}"] if self.strategy in SEES_ONE else []

    def _want_sums(self) -> None:
        """Raise for what has to see single updates, and where keys cannot be made."""
        problems = self._seeing()
        if self.codec != "float32":
            problems.append(f"codec={self.codec!r}")
        if self.max_norm is not None:
            problems.append(f"max_norm={self.max_norm!r}")
        if problems:
            raise ConfigError(
                f"secure_aggregation with {', '.join(problems)}: that has to see"
                " single updates, and the server sees sums alone"
            )
        if find_spec("cryptography") is None:
            raise ConfigError(
                "secure_aggregation: the package cryptography is not installed:"
                " pip install 'edgewise[federated]'"
            )

    def _want_mode(self) -> None:
        """Raise for a mode that there is not, and for what needs whole rounds."""
        size = self.buffer_size
        if self.mode not in MODES:
            raise ConfigError(f"mode={self.mode!r}: want one of {', '.join(MODES)}")
        if size is not None:
            want_count("buffer_size", size)
        if self.mode == "sync":
            if size is not None:
                raise ConfigError(f"buffer_size={size!r}: goes with mode='buffered'")
            return
        problems = [
            *self._seeing(),
            *(
                f"{name}={getattr(self, name)!r}"
                for name in ("secure_aggregation", "privacy")
                if getattr(self, name)
            ),
        ]
        if problems:
            raise ConfigError(
                f"mode='buffered' with {', '.join(problems)}: that needs devices that"
                " are asked together, of one model"
            )

    def _want_alike(self) -> None:
        """Raise where whole updates are compared or hidden and some are parts."""
        kinds = {repr(device.trainable) for device in self.devices or ()}
        if self.secure_aggregation and kinds - {repr("all")}:
            what = "secure_aggregation"
        elif not isinstance(self.strategy, str) and kinds - {repr("all")}:
            (what,) = self._seeing()
        elif self.strategy == "krum" and len(kinds) > 1:
            what = "strategy='krum'"
        else:
            return
        raise ConfigError(
            f"{what} with devices that train {', '.join(sorted(kinds))}: want devices"
            " that train the same, and all of it where sums alone are seen or Flower"
            " joins whole models"
        )


def _want_share(name: str, value: object) -> None:
    want_number(name, value, "a share from 0 to 1", lambda x: 0 <= x <= 1)
