"""What a trainer is to do, and the step that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise_trainer.lora import Adapter
from edgewise_trainer.losses import Loss
from edgewise_trainer.names import TRAIN_STEP
from edgewise_trainer.parts import part
from edgewise_trainer.update import Optimizer

Trainable: TypeAlias = "str | Sequence[str]"


class Setting(NamedTuple):
    """What a trainer was asked for.

    Attributes:
        loss: What it makes small; None where only the step that does so is known.
        optimizer: How parameters follow their gradients.
        trainable: Which parameters.
        batch_size: What data are cut into; None: nothing was said.
        seed: Of the order of examples, and of adapters.
    """

    loss: Loss | None
    optimizer: Optimizer
    trainable: Trainable
    batch_size: int | None
    seed: int


class Step(NamedTuple):
    """A training step.

    Attributes:
        graph: Inputs of the model, then target, rate and step number; gives the loss.
        states: What it remembers beside the parameters.
        unreached: Parameters that were to be trained and that the loss does not use.
    """

    graph: Graph
    states: tuple[VariableInfo, ...]
    unreached: tuple[str, ...]


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


def made(module: Module, setting: Setting) -> Task:
    """The task of what a trainer was asked for.

    Raises:
        ConfigError: It says nothing that there is.
        TrainabilityError: An op between the loss and a parameter has no gradient.
    """
    # What was saved with its step goes on without all that makes one.
    from edgewise_trainer.make import aim, step_of  # noqa: PLC0415

    if setting.loss is None:
        raise ShapeError(
            "a step that was saved with a loss of your own takes the sizes only that"
            " it was made for; save it at these sizes, or give the loss"
        )
    goal = aim(module, setting.trainable, setting.seed)
    step = step_of(goal, setting.loss, setting.optimizer)
    return Task(goal.trained, goal.adapters, step)


def step_module(module: Module, step: Step, states: Mapping[str, Array]) -> Module:
    """A module that holds the step, to run on its own.

    Args:
        module: The model.
        step: Its training step.
        states: What the step remembers; as at first where one is missing.
    """
    return part(module, TRAIN_STEP, step.graph, step.states, states)
