"""Options that the commands of the trainer share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
