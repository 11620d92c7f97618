"""What a trainer is to do: which parameters, how, and the step that does it."""

from __future__ import annotations

from typing import NamedTuple

from edgewise.ir.module import Module
from edgewise_trainer.lora import Adapter, adapted, adapters
from edgewise_trainer.losses import Loss
from edgewise_trainer.selection import Trainable, lora_rank, selected
from edgewise_trainer.step import Step, training_step
from edgewise_trainer.update import Optimizer


class Task(NamedTuple):
    """What is trained, and by which step.

    Attributes:
        trained: Names of the parameters.
        adapters: The factors that are trained in their stead, if any.
        step: The training step; its states include the factors.
    """

    trained: tuple[str, ...]
    adapters: tuple[Adapter, ...]
    step: Step


def make_task(
    module: Module, trainable: Trainable, loss: Loss, optimizer: Optimizer, seed: int
) -> Task:
    """The task of training what ``trainable`` says.

    Raises:
        ConfigError: ``trainable`` says nothing that there is.
        TrainabilityError: An op between the loss and a parameter has no gradient.
    """
    trained, rank = selected(module, trainable), lora_rank(trainable)
    if rank is None:
        return Task(trained, (), training_step(module, trained, loss, optimizer))
    chosen = adapters(module, trained, rank, seed)
    factors = [info for adapter in chosen for info in (adapter.a, adapter.b)]
    keys = [info.key for info in factors]
    step = training_step(adapted(module, chosen), keys, loss, optimizer)
    return Task(trained, chosen, step._replace(states=(*step.states, *factors)))
