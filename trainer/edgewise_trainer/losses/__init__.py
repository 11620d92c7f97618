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
from edgewise.ir.graph import Value
from edgewise.ops import Sigmoid, Softmax
from edgewise.types import TensorType
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
from edgewise_trainer.wanted import as_array

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
    "squashed",
    "target_type",
    "want_classes",
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
    if isinstance(loss, type) or not callable(loss):
        raise ConfigError(f"loss={loss!r}: want a name or a callable")
    return loss


def picks_classes(loss: Loss | None) -> bool:
    """Whether the largest of the outputs along axis 1 is what is meant by a class."""
    if isinstance(loss, Distillation):
        return picks_classes(loss.loss)
    return isinstance(loss, CrossEntropy | Hinge)


def squashed(loss: Loss, output: Value) -> str:
    """What a model applies to its logits that the loss applies as well, if it does."""
    op = output.node.op
    if isinstance(loss, CrossEntropy | KLDivergence) and isinstance(op, Softmax):
        return "Softmax"
    sigmoid = isinstance(op, Sigmoid) or getattr(op, "activation", "") == "sigmoid"
    return "Sigmoid" if isinstance(loss, BinaryCrossEntropy) and sigmoid else ""


def want_classes(loss: Loss | None, target: object, output: TensorType) -> None:
    """Raise ``ConfigError`` where a target is none of the classes of an output.

    Args:
        loss: One that does not pick classes takes any target.
        target: Class numbers; what is no whole number is refused elsewhere.
        output: Scores of classes along axis 1.
    """
    while isinstance(loss, Distillation):
        loss = loss.loss
    array = as_array("target", target)
    if not isinstance(loss, CrossEntropy | Hinge) or array.dtype.kind not in "iu":
        return
    count = output.shape[1]
    if not isinstance(count, int):
        return
    wrong = array[(array < 0) | (array >= count)]
    if isinstance(loss, CrossEntropy):
        wrong = wrong[wrong != loss.ignore_index]
    if wrong.size:
        raise ConfigError(
            f"target: got class {wrong[0]}; the output has {count} classes, "
            f"0 to {count - 1}"
        )
