"""How much of the loss quantising each weight costs, by gradients."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import INFER, Model, logical_array, stored_array
from edgewise.quant.alone import Alone
from edgewise.quant.config import QuantizeConfig
from edgewise.quant.equalize import equalized
from edgewise.quant.quantize import chosen_sites
from edgewise.quant.weights import as_bytes
from edgewise_trainer import losses
from edgewise_trainer.data import Inputs, batches, named
from edgewise_trainer.incremental.ewc import importances
from edgewise_trainer.losses import Loss
from edgewise_trainer.wanted import want_count


def loss_rise(
    model: Model,
    data: tuple[Inputs, Array],
    config: QuantizeConfig | None = None,
    loss: str | Loss = "cross_entropy",
    *,
    examples: int = 64,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, float]:
    """By how much the loss is expected to rise where one weight alone is quantised.

    ``sum(h * d ** 2) / 2`` over a weight, d being what rounding changes of each number
    and h the curvature of the loss there (Dong et al., 2019), for which the diagonal of
    the Fisher information stands: where a model is trained, they are about equal.  What
    rounding of images costs is not in it.  A step for each example, and no run of any
    quantised model: ``QuantizeConfig(order=tuple(rises))`` spares a guard its own
    ranking, which runs as many models as there are layers.

    Args:
        model: Trained.
        data: Inputs and targets.
        config: How it would be quantised.
        loss: What it was trained for.
        examples: How many are looked at, drawn anew by ``seed``.
        seed: Of that, and of classes that are drawn by what the model says.
        threads: Threads of a step.

    Returns:
        A number for each weight, the most sensitive first.

    Raises:
        ConfigError: Nothing in the model can be quantised so, or there is no such loss.
        TrainabilityError: An op between the loss and a weight has no gradient.
        ShapeError: Inputs and targets differ in number, or there are none.
    """
    want_count("examples", examples)
    config = config or QuantizeConfig()
    if config.equalize:
        model = equalized(model)
    lost = _lost(model, config)
    rng = np.random.default_rng(seed)
    names = tuple(info.name for info in model.inputs)
    drawn = batches(data, 1, rng)
    few = ((named(x, names), target) for x, target in islice(drawn, examples))
    curvature = importances(model, losses.found(loss), list(lost), few, rng, threads)
    rises = {
        key: float((curvature[key] * np.square(change, dtype=np.float64)).sum()) / 2
        for key, change in lost.items()
    }
    return dict(sorted(rises.items(), key=lambda item: -item[1]))


def _lost(model: Model, config: QuantizeConfig) -> Mapping[str, Array]:
    """What quantisation changes of each weight, in the shapes of the source model."""
    module = model.module
    if config.activations == "float32":
        infos = {key: own.info for key, own in Alone(model, config).small.items()}
        if not infos:
            raise ConfigError(f"got a model without weights for {config.weights}")
        return {
            key: logical_array(info, stored_array(info))
            - logical_array(module.variables[key], stored_array(module.variables[key]))
            for key, info in infos.items()
        }
    sites = chosen_sites(module.functions[INFER], module.variables, config)
    paired, alone = config.reduce_range, config.per_channel
    return {
        key: as_bytes(module.variables[key], paired=paired, per_channel=alone).lost
        for key in dict.fromkeys(sites.names[node] for node in sites.layers)
    }
