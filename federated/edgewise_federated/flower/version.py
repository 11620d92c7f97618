"""Which Flower this works with, and what of it is not public."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from edgewise.errors import FederatedError

SUPPORTED = ">=1.42,<1.43"
MINOR = (1, 42)
INSTALL = "pip install 'edgewise[federated]'"


def want_flower() -> None:
    """Raise unless a Flower of the right version is installed.

    Raises:
        FederatedError: There is none, or another.
    """
    try:
        found = metadata.version("flwr")
    except metadata.PackageNotFoundError as error:
        raise FederatedError(
            f"Flower is not installed; want flwr{SUPPORTED}: {INSTALL}"
        ) from error
    if tuple(map(int, found.split(".")[:2])) != MINOR:
        raise FederatedError(f"got flwr {found}; want flwr{SUPPORTED}: {INSTALL}")


def private(module: str, name: str) -> Any:
    """Something of Flower that it does not promise to keep.

    Raises:
        FederatedError: It is not there.
    """
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise FederatedError(
            f"flwr {metadata.version('flwr')} has no {module}.{name}, which it does not"
            f" promise to keep; want flwr{SUPPORTED}: {INSTALL}"
        ) from error
