"""Federated rounds: devices learn from their own data, a server joins the changes.

``client_app`` and ``server_app`` are Flower's, which is imported when they are asked
for (``pip install 'edgewise[federated]'``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from edgewise_federated.config import Device, FederatedConfig, Privacy
from edgewise_federated.history import FederatedHistory, Round
from edgewise_federated.simulate import simulate
from edgewise_federated.update import Update

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from edgewise_federated.flower.client import client_app
    from edgewise_federated.flower.server import server_app

__all__ = [
    "Device",
    "FederatedConfig",
    "FederatedHistory",
    "Privacy",
    "Round",
    "Update",
    "client_app",
    "server_app",
    "simulate",
]


_HOMES = {
    "client_app": "edgewise_federated.flower.client",
    "server_app": "edgewise_federated.flower.server",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
