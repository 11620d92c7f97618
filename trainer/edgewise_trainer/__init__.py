"""Learning on the device: any model that runs can be trained in the same process."""

from __future__ import annotations

from edgewise_trainer import losses, optimizers
from edgewise_trainer.trainer import Trainer

__all__ = ["Trainer", "losses", "optimizers"]
