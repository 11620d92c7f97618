"""Federated rounds: devices learn from their own data, a server joins the changes."""

from edgewise_federated.config import Device, FederatedConfig, Privacy
from edgewise_federated.history import FederatedHistory, Round
from edgewise_federated.simulate import simulate
from edgewise_federated.update import Update

__all__ = [
    "Device",
    "FederatedConfig",
    "FederatedHistory",
    "Privacy",
    "Round",
    "Update",
    "simulate",
]
