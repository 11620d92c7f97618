"""What a trainer is to do, and the step that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from edgewise.errors import ShapeError
from edgewise.ir.graph import Graph, Value
from edgewise.ir.module import Module, VariableInfo
from edgewise.quant.config import QuantizeConfig
from edgewise_trainer.losses import Loss
from edgewise_trainer.sizes import in_bytes
from edgewise_trainer.stand_ins import StandIn
from edgewise_trainer.update import Optimizer
from edgewise_trainer.wanted import want_count

Trainable: TypeAlias = "str | Sequence[str]"


class Way(NamedTuple):
    """A way to do a step.

    Attributes:
        examples: How many at once at most, their gradients being added up; None: all.
        segments: Into how many the forward pass is cut so that activations are made
            again instead of kept; 1: none is.
    """

    examples: int | None = None
    segments: int = 1


WHOLE = Way()


class Setting(NamedTuple):
    """What a trainer was asked for.

    Attributes:
        loss: What it makes small; None where only the step that does so is known.
        optimizer: How parameters follow their gradients.
        trainable: Which parameters.
        batch_size: What data are cut into; None: nothing was said.
        seed: Of the order of examples, and of adapters.
        memory_budget: Bytes by which the process may grow; None: any.
        way: How steps are done to keep to that; None: not chosen yet.
        quantize: How the model is quantised that training is for; None: it is not.
    """

    loss: Loss | None
    optimizer: Optimizer
    trainable: Trainable
    batch_size: int | None
    seed: int
    memory_budget: int | None = None
    way: Way | None = None
    quantize: QuantizeConfig | None = None

    def with_room(self, batch_size: int | None, budget: int | str | None) -> Setting:
        """The setting with another batch size and budget, where they are given."""
        changed = self._replace(batch_size=self.size(batch_size))
        if budget is None:
            return changed
        return changed._replace(memory_budget=in_bytes(budget), way=None)

    def size(self, batch_size: int | None) -> int | None:
        """Examples of a batch as they are given, else as they were asked for.

        Raises:
            ConfigError: It is no number of examples.
        """
        if batch_size is not None:
            want_count("batch_size", batch_size)
        return batch_size or self.batch_size


class Step(NamedTuple):
    """A training step.

    Attributes:
        graph: Inputs of the model, then target, rate and step number; gives the loss.
        states: What it remembers beside the parameters.
        unreached: Parameters that were to be trained and that the loss does not use.
        grads: The gradient of each parameter, in the graph; none where it was read from
            a file.
        weight: What the loss of a batch counts in the mean over several, likewise.
    """

    graph: Graph
    states: tuple[VariableInfo, ...]
    unreached: tuple[str, ...]
    grads: Mapping[str, Value] = {}
    weight: Value | None = None


class Task(NamedTuple):
    """What is trained, and by which step.

    Attributes:
        trained: Names of the parameters.
        adapters: Variables that are trained in their stead, if any.
        step: The training step; its states include the factors.
    """

    trained: tuple[str, ...]
    adapters: tuple[StandIn, ...]
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
            " it was made for, and no memory_budget; give the loss"
        )
    goal = aim(module, setting.trainable, setting.seed, setting.quantize)
    step = step_of(goal, setting.loss, setting.optimizer)
    return Task(goal.trained, goal.adapters, step)
