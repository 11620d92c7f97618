"""Options that the commands of the trainer share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.errors import ConfigError

if TYPE_CHECKING:  # --help makes no trainer
    from edgewise_trainer.optimizers import Optimizer
    from edgewise_trainer.schedules import Rate

OPTIMIZERS = ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lion")

Output = Annotated[Path, typer.Option("--output", "-o", help="The .ew file to write.")]
Trained = Annotated[
    list[str] | None,
    typer.Option(
        help="all, last:K, bias, norm, lora:RANK; or a pattern of names. Repeatable."
    ),
]


def chosen(trainable: list[str] | None) -> str | list[str]:
    """One that says which kind, or patterns of names."""
    if not trainable:
        return "all"
    (first, *more) = trainable
    kinds = {"all", "bias", "norm"}
    is_kind = first in kinds or first.startswith(("last:", "lora:"))
    return first if is_kind and not more else trainable


def optimizer_of(
    name: str, rate: float | None, scheduled: Callable[[float], Rate] = float
) -> Optimizer:
    """The optimizer of a name.

    Args:
        name: One of ``OPTIMIZERS``.
        rate: Of learning; None: the optimizer's own.
        scheduled: Makes the course of the rate of where it begins.

    Raises:
        ConfigError: There is none of that name.
    """
    from edgewise_trainer import optimizers

    kinds: dict[str, Any] = {
        kind.lower(): getattr(optimizers, kind)
        for kind in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Lion")
    }
    if name not in kinds:
        raise ConfigError(f"--optimizer {name!r}: want {', '.join(OPTIMIZERS)}")
    kind = kinds[name]
    if rate is None:
        (field,) = (f for f in dataclasses.fields(kind) if f.name == "lr")
        rate = 1e-2 if field.default is dataclasses.MISSING else field.default
    made: Optimizer = kind(lr=scheduled(float(rate)))
    return made
