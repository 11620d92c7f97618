"""What is trained and by which step, made of what was asked for: autodiff at work."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.ir.module import Module
from edgewise_trainer.lora import Adapter, adapted, adapters
from edgewise_trainer.losses import Loss
from edgewise_trainer.selection import lora_rank, selected
from edgewise_trainer.step import training_step
from edgewise_trainer.task import Step, Trainable
from edgewise_trainer.update import Optimizer


class Aim(NamedTuple):
    """What is trained.

    Attributes:
        module: The model, with adapters at work where there are any.
        trained: Names of the parameters.
        adapters: The factors that are trained in their stead, if any.
        keys: Variables that a step changes: the parameters, or the factors.
    """

    module: Module
    trained: tuple[str, ...]
    adapters: tuple[Adapter, ...]
    keys: tuple[str, ...]


def aim(module: Module, trainable: Trainable, seed: int) -> Aim:
    """What ``trainable`` says of a model.

    Raises:
        ConfigError: It says nothing that there is.
    """
    trained, rank = selected(module, trainable), lora_rank(trainable)
    if rank is None:
        return Aim(module, trained, (), trained)
    chosen = adapters(module, trained, rank, seed)
    keys = tuple(info.key for a in chosen for info in (a.a, a.b))
    return Aim(adapted(module, chosen), trained, chosen, keys)


def step_of(aim: Aim, loss: Loss, optimizer: Optimizer) -> Step:
    """The step that trains; its states include the factors.

    Raises:
        TrainabilityError: An op between the loss and a parameter has no gradient.
    """
    step = training_step(aim.module, aim.keys, loss, optimizer)
    factors = [info for adapter in aim.adapters for info in (adapter.a, adapter.b)]
    return step._replace(states=(*step.states, *factors))
