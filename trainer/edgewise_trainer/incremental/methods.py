"""What keeps a model from forgetting, and how much of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from edgewise.errors import ConfigError
from edgewise_trainer.incremental.policy import POLICIES
from edgewise_trainer.losses import CrossEntropy, Loss
from edgewise_trainer.selection import lora_rank
from edgewise_trainer.task import Trainable
from edgewise_trainer.wanted import want_count, want_positive

MOST = 4.0  # replayed examples for each new one, where nobody asks for more


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Examples of the past are learned again beside new ones.

    Attributes:
        policy: Which stay when the memory is full: ``"balanced"``, classes alike; or
            ``"reservoir"``, each with the same chance.
        share: Old examples for each new one; None: as many as make old and new classes
            alike, from 1 to ``MOST``.  With fewer a new class is seen everywhere.
    """

    policy: str = "balanced"
    share: float | None = None

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ConfigError(
                f"policy={self.policy!r}: want one of {', '.join(POLICIES)}"
            )
        if self.share is not None:
            want_positive("share", self.share)

    def shares(self, old: int, new: int) -> float:
        """Old examples for each new one, for these numbers of classes."""
        alike = old / new if new else 1.0
        return self.share or min(max(alike, 1.0), MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ewc:
    """Parameters that earlier tasks need stay near (Kirkpatrick et al., 2017).

    Attributes:
        strength: Of the penalty ``strength / 2 * importance * (now - then) ** 2``.
        examples: Of a task, from which importances are estimated, one by one.
    """

    strength: float = 100.0
    examples: int = 256

    def __post_init__(self) -> None:
        want_positive("strength", self.strength)
        want_count("examples", self.examples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lwf:
    """What the model said before is learned beside the new (Li and Hoiem, 2016).

    Attributes:
        temperature: By which logits are divided before they are compared.
        weight: Of the old answers against the new targets.
    """

    temperature: float = 2.0
    weight: float = 0.5

    def __post_init__(self) -> None:
        want_positive("temperature", self.temperature)
        want_positive("weight", self.weight)


Method: TypeAlias = "Replay | Ewc | Lwf"
NAMED: dict[str, Callable[..., Method]] = {"replay": Replay, "ewc": Ewc, "lwf": Lwf}


@dataclass(frozen=True, slots=True)
class Methods:
    """Those in use; None where one is not."""

    replay: Replay | None = None
    ewc: Ewc | None = None
    lwf: Lwf | None = None

    def described(self) -> dict[str, dict[str, Any]]:
        """By name, for a file; ``parsed`` reads it."""
        each = {"replay": self.replay, "ewc": self.ewc, "lwf": self.lwf}
        return {name: asdict(how) for name, how in each.items() if how is not None}


def parsed(found: Mapping[str, Mapping[str, Any]]) -> tuple[Method, ...]:
    """What ``described`` gave."""
    return tuple(NAMED[name](**options) for name, options in found.items())


def methods(given: str | Method | tuple[Method, ...]) -> Methods:
    """The methods of a name (``"none"``, ``"replay"``, ``"replay+lwf"``), or as given.

    Raises:
        ConfigError: There is no such method, or one comes twice.
    """
    found: dict[str, Method] = {}
    for method in _each(given):
        name = type(method).__name__.lower()
        if not isinstance(method, Replay | Ewc | Lwf) or name in found:
            raise ConfigError(f"method={given!r}: want each of {', '.join(NAMED)} once")
        found[name] = method
    return Methods(**found)  # type: ignore[arg-type]  # each by the name of its class


def want_agreement(
    use: Methods, loss: Loss, trainable: Trainable, store: object | None
) -> None:
    """Raise ``ConfigError`` where options contradict each other."""
    if store is not None and use.replay is None:
        raise ConfigError("store: want method='replay', or one joined with it")
    if use.lwf is not None and not isinstance(loss, CrossEntropy):
        raise ConfigError(f"method='lwf': want loss='cross_entropy', not {loss}")
    if use.ewc is not None and lora_rank(trainable) is not None:
        raise ConfigError(
            f"method='ewc': want parameters that stay, not the factors of {trainable!r}"
        )


def _each(given: str | Method | tuple[Method, ...]) -> tuple[Method, ...]:
    if not isinstance(given, str):
        return given if isinstance(given, tuple) else (given,)
    if given == "none":
        return ()
    names = given.split("+")
    unknown = [name for name in names if name not in NAMED]
    if unknown:
        raise ConfigError(
            f"method={given!r}: want 'none', or of {', '.join(NAMED)} one or several "
            "joined by '+'"
        )
    return tuple(NAMED[name]() for name in names)
