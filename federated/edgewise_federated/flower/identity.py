"""Who sends messages in a process that Flower did not start."""

from __future__ import annotations

from edgewise_federated.flower.version import private

NOBODY = 1  # Flower's own processes are told who they are; others need any number


def identify() -> None:
    """Let messages be made in this process; who it is already stays."""
    identity = private("flwr.supercore.task_identity", "TaskIdentity")
    for name in ("run_id", "task_id", "node_id"):
        try:
            getattr(identity, name)
        except RuntimeError:  # as Flower says that it is not set
            setattr(identity, name, NOBODY)
