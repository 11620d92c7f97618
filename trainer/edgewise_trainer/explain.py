"""Reports of trainers, also of those that nobody has made yet."""

from __future__ import annotations

from edgewise.errors import ConfigError, TrainabilityError
from edgewise.ir.module import Module
from edgewise.model import Model, want_model
from edgewise.runtime.config import SessionConfig
from edgewise_trainer import losses
from edgewise_trainer.engine import Engine, engine_for
from edgewise_trainer.losses import Loss
from edgewise_trainer.optimizers import chosen
from edgewise_trainer.report import TrainabilityReport
from edgewise_trainer.task import Setting, Trainable
from edgewise_trainer.update import Optimizer


def explained(
    model: Model,
    trainable: Trainable = "all",
    *,
    loss: str | Loss = "cross_entropy",
    optimizer: Optimizer | None = None,
    batch_size: int | None = None,
    memory_budget: int | str | None = None,
    threads: int | None = None,
) -> TrainabilityReport:
    """The report of a trainer that need not be made, nor possible.

    Raises:
        ConfigError: There is no such loss, or no parameter fits ``trainable``.
    """
    # Who never asks loads nothing that makes gradients.
    from edgewise_trainer.make import aim, step_of  # noqa: PLC0415
    from edgewise_trainer.reporting import report  # noqa: PLC0415

    want_model(model)
    goal, wanted = aim(model.module, trainable, seed=0), losses.found(loss)
    optimizer = chosen(optimizer)
    setting = Setting(wanted, optimizer, trainable, None, 0)
    setting = setting.with_room(batch_size, memory_budget)
    batch = setting.batch_size or 1
    config = SessionConfig(threads=threads)
    try:
        step = step_of(goal, wanted, optimizer)
        engine = engine_for(model, step, {}, config, setting, batch)
    except (TrainabilityError, ConfigError) as error:
        return report(goal, wanted, batch, None, problem=str(error))
    return report(goal, wanted, batch, engine.predict(batch), notes=engine.notes)


def described(
    module: Module, setting: Setting, batch: int, engine: Engine
) -> TrainabilityReport:
    """The report of a trainer.

    Raises:
        ConfigError: Its loss is not known.
    """
    from edgewise_trainer.make import aim  # noqa: PLC0415 - as above
    from edgewise_trainer.reporting import report  # noqa: PLC0415

    if setting.loss is None:
        raise ConfigError(
            "the step was saved with a loss of your own: give the loss for a report"
        )
    goal = aim(module, setting.trainable, setting.seed, setting.quantize)
    return report(goal, setting.loss, batch, engine.predict(batch), notes=engine.notes)
