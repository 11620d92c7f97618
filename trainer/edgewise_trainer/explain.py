"""The report of a model that nobody trains yet."""

from __future__ import annotations

from edgewise.errors import TrainabilityError
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise_trainer import losses
from edgewise_trainer.engine import Engine
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import SGD
from edgewise_trainer.report import TrainabilityReport, report
from edgewise_trainer.selection import Trainable
from edgewise_trainer.task import aim, step_of
from edgewise_trainer.update import Optimizer


def explained(
    model: Model,
    trainable: Trainable = "all",
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: Optimizer | None = None,
    batch_size: int | None = None,
    threads: int | None = None,
) -> TrainabilityReport:
    """The report of a trainer that need not be made, nor possible.

    Raises:
        ConfigError: There is no such loss, or no parameter fits ``trainable``.
    """
    goal, wanted = aim(model.module, trainable, seed=0), losses.found(loss)
    batch = batch_size or 1
    try:
        step = step_of(goal, wanted, optimizer or SGD(1e-2))
    except TrainabilityError as error:
        return report(goal, wanted, batch, None, problem=str(error))
    engine = Engine(model, step, {}, SessionConfig(threads=threads))
    return report(goal, wanted, batch, engine.predict(batch))
