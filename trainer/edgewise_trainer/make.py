"""What is trained and by which step, made of what was asked for: autodiff at work."""

from __future__ import annotations

import functools
import logging
from typing import NamedTuple

from edgewise.ir.module import Module
from edgewise.quant.config import QuantizeConfig
from edgewise_trainer.coded import codebooks, keeps, kept
from edgewise_trainer.lora import adapters
from edgewise_trainer.losses import Loss, squashed
from edgewise_trainer.names import INFER
from edgewise_trainer.rounding import learned_keys
from edgewise_trainer.selection import lora_rank, selected
from edgewise_trainer.stand_ins import StandIn, reading, standing_in
from edgewise_trainer.step import training_step
from edgewise_trainer.task import Step, Trainable
from edgewise_trainer.update import Optimizer

logger = logging.getLogger(__name__)


class Aim(NamedTuple):
    """What is trained.

    Attributes:
        module: The model as it is trained: with what stands in for weights at work.
        trained: Names of the parameters.
        adapters: Variables that are trained in their stead, if any.
        keys: Variables that a step changes: the parameters, or what stands in.
    """

    module: Module
    trained: tuple[str, ...]
    adapters: tuple[StandIn, ...]
    keys: tuple[str, ...]


def aim(
    module: Module,
    trainable: Trainable,
    seed: int,
    quantize: QuantizeConfig | None = None,
) -> Aim:
    """What ``trainable`` says of a model.

    Raises:
        ConfigError: It says nothing that there is.
    """
    trained, rank = selected(module, trainable), lora_rank(trainable)
    if quantize is not None:
        from edgewise_trainer import small_numbers  # noqa: PLC0415 - who trains so

        module = small_numbers.rounding(module, quantize, trained)
    if rank is not None:
        chosen: tuple[StandIn, ...] = adapters(module, trained, rank, seed)
        keys = tuple(info.key for own in chosen for info in own.infos)
        keys += learned_keys(module)
        return Aim(standing_in(module, chosen), trained, chosen, keys)
    chosen = codebooks(module, trained)
    named = {own.weight: [info.key for info in own.infos] for own in chosen}
    keys = tuple(key for name in trained for key in named.get(name, [name]))
    keys += learned_keys(module)
    infos = [module.variables[key] for key in trained]
    ways = {i.key: functools.partial(kept, info=i) for i in infos if keeps(i)}
    return Aim(standing_in(reading(module, ways), chosen), trained, chosen, keys)


def step_of(aim: Aim, loss: Loss, optimizer: Optimizer) -> Step:
    """The step that trains; its states include what stands in for weights.

    Raises:
        TrainabilityError: An op between the loss and a parameter has no gradient.
    """
    op = squashed(loss, aim.module.functions[INFER].outputs[0])
    if op:
        logger.warning(
            "the model ends with %s, which the loss applies itself: learning is slow; "
            "export the model without it",
            op,
        )
    step = training_step(aim.module, aim.keys, loss, optimizer)
    others = [info for own in aim.adapters for info in own.infos]
    return step._replace(states=(*step.states, *others))
