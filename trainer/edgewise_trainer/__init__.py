"""Learning on the device: any model that runs can be trained in the same process."""

from __future__ import annotations

from edgewise_trainer import losses, optimizers, schedules
from edgewise_trainer.gradients import gradients
from edgewise_trainer.history import EarlyStop, Epoch, History, Progress
from edgewise_trainer.report import TrainabilityReport
from edgewise_trainer.trainer import Trainer

__all__ = [
    "EarlyStop",
    "Epoch",
    "History",
    "Progress",
    "TrainabilityReport",
    "Trainer",
    "gradients",
    "losses",
    "optimizers",
    "schedules",
]
