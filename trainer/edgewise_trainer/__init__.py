"""Learning on the device: any model that runs can be trained in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise_trainer import losses, optimizers, schedules
from edgewise_trainer.history import EarlyStop, Epoch, History, Progress
from edgewise_trainer.report import TrainabilityReport
from edgewise_trainer.trainer import Trainer

if TYPE_CHECKING:  # a saved step trains without what makes gradients
    from edgewise_trainer.rise import loss_rise
    from edgewise_trainer.sensitivity import gradients

__all__ = [
    "EarlyStop",
    "Epoch",
    "History",
    "Progress",
    "TrainabilityReport",
    "Trainer",
    "gradients",
    "loss_rise",
    "losses",
    "optimizers",
    "schedules",
]


def __getattr__(name: str) -> object:
    if name == "gradients":
        from edgewise_trainer.sensitivity import gradients  # noqa: PLC0415 - as above

        return gradients
    if name == "loss_rise":
        from edgewise_trainer.rise import loss_rise  # noqa: PLC0415 - as above

        return loss_rise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
