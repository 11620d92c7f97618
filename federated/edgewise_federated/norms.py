"""Running statistics of batch norms: what of them travels, and what stays."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from edgewise.errors import ConfigError
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise_federated.config import FederatedConfig
from edgewise_federated.update import Layout
from edgewise_trainer.form import batch_norms


def numbers(model: Model) -> dict[str, Array]:
    """Parameters and statistics by name."""
    return {**model.parameters(), **model.statistics()}


def followed(module: Module, trained: Collection[str]) -> tuple[list[str], list[str]]:
    """Means and variances that follow the batches while parameters are trained.

    Those of the batch norms whose scales are among them.
    """
    norms = [norm for norm in batch_norms(module) if norm.scale in trained]
    means = [norm.mean for norm in norms if norm.mean is not None]
    variances = [norm.variance for norm in norms if norm.variance is not None]
    return list(dict.fromkeys(means)), list(dict.fromkeys(variances))


def part(layout: Layout, module: Module, trained: Collection[str]) -> Layout:
    """What of all that travels changes where some parameters are trained."""
    return layout.only({*trained, *chain(*followed(module, trained))})


def want_no_noise(config: FederatedConfig, names: Collection[str]) -> None:
    """Raise where noise would fall on statistics.

    Their changes are far larger than those of parameters, so that a norm that holds
    them leaves nothing of what was learned, and noise makes variances negative.

    Raises:
        ConfigError: It would.
    """
    if names and config.privacy is not None:
        raise ConfigError(
            f"privacy: noise on running statistics ({min(names)!r} and others) leaves"
            " no model; want personal='norm': batch norms stay on each device"
        )
