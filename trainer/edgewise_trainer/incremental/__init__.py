"""Learning one task after another without losing the rest."""

from __future__ import annotations

from edgewise_trainer.incremental.drift import DriftDetector
from edgewise_trainer.incremental.learner import IncrementalLearner
from edgewise_trainer.incremental.memory import ReplayMemory
from edgewise_trainer.incremental.methods import Ewc, Lwf, Replay
from edgewise_trainer.incremental.report import LearnReport

__all__ = [
    "DriftDetector",
    "Ewc",
    "IncrementalLearner",
    "LearnReport",
    "Lwf",
    "Replay",
    "ReplayMemory",
]
