"""Losses: how far an output is from its target, as one number in graph terms.

Definitions and defaults are PyTorch's, so that numbers can be compared.  A loss is any
callable ``loss(output, target) -> Value`` that gives a scalar; ``target(type)`` of it,
where it has one, tells the type of the target of an output, which is else the output's;
``over(inputs)``, where it has one, gives the loss of a model that reads those, and
``weight_of(output, target)`` what it divides by, if that is not the examples.
"""

from __future__ import annotations

from collections.abc import Callable

from edgewise.errors import ConfigError
from edgewise_trainer.losses.classes import CrossEntropy, Hinge, KLDivergence
from edgewise_trainer.losses.distillation import Distillation, distillation
from edgewise_trainer.losses.loss import Loss, scalar_loss, target_type, weight_of
from edgewise_trainer.losses.numbers import (
    BinaryCrossEntropy,
    Cosine,
    Huber,
    MeanAbsoluteError,
    MeanSquaredError,
)
from edgewise_trainer.losses.pairs import Contrastive, CosineEmbedding

__all__ = [
    "NAMED",
    "BinaryCrossEntropy",
    "Contrastive",
    "Cosine",
    "CosineEmbedding",
    "CrossEntropy",
    "Distillation",
    "Hinge",
    "Huber",
    "KLDivergence",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "distillation",
    "found",
    "named",
    "picks_classes",
    "scalar_loss",
    "target_type",
    "weight_of",
]

NAMED: dict[str, Callable[[], Loss]] = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "kl": KLDivergence,
    "mse": MeanSquaredError,
    "mae": MeanAbsoluteError,
    "huber": Huber,
    "binary_cross_entropy": BinaryCrossEntropy,
    "cosine": Cosine,
    "cosine_embedding": CosineEmbedding,
    "contrastive": Contrastive,
}


def named(name: str) -> Loss:
    """The loss called ``name``, with its defaults.

    Raises:
        ConfigError: There is none.
    """
    if name not in NAMED:
        raise ConfigError(
            f"loss={name!r}: want one of {', '.join(NAMED)}, or a callable"
        )
    return NAMED[name]()


def found(loss: str | Loss) -> Loss:
    """A loss by its name, or as it is given.

    Raises:
        ConfigError: It is neither.
    """
    if isinstance(loss, str):
        return named(loss)
    if not callable(loss):
        raise ConfigError(f"loss={loss!r}: want a name or a callable")
    return loss


def picks_classes(loss: Loss | None) -> bool:
    """Whether the largest of the outputs along axis 1 is what is meant by a class."""
    if isinstance(loss, Distillation):
        return picks_classes(loss.loss)
    return isinstance(loss, CrossEntropy | Hinge)
