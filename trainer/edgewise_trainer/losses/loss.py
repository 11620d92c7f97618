"""What a loss is: one number in graph terms, of an output and a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from edgewise.errors import ConfigError
from edgewise.ir.graph import Value
from edgewise.ops import Cast, DimValue, ReduceMean, ReduceSum
from edgewise.types import DType, TensorType


class Loss(Protocol):
    """What trains a model: a scalar to make small."""

    def __call__(self, output: Value, target: Value) -> Value:
        """The loss, a scalar of the output's type."""


def target_type(loss: Loss, output: TensorType) -> TensorType:
    """The type of the target that a loss wants for an output."""
    tell: Callable[[TensorType], TensorType] | None = getattr(loss, "target", None)
    return output if tell is None else tell(output)


def scalar_loss(
    loss: Loss, output: Value, target: Value, inputs: Sequence[Value]
) -> Value:
    """The loss of an output.

    Args:
        loss: What makes it; one that has a method ``over`` is first asked for the loss
            over the inputs of the model.
        output: What the model gives.
        target: What is wanted.
        inputs: What the model reads.

    Raises:
        ConfigError: It is not one real number.
    """
    over: Callable[[Sequence[Value]], Loss] | None = getattr(loss, "over", None)
    value = (loss if over is None else over(inputs))(output, target)
    if not isinstance(value, Value):
        got = type(value).__name__
        raise ConfigError(f"the loss gives a {got}; want a value in graph terms")
    if value.type.shape != () or not value.type.dtype.is_float:
        raise ConfigError(f"the loss gives {value.type}; want one real number")
    return value


def weight_of(loss: Loss, output: Value, target: Value) -> Value | None:
    """What the loss of a batch counts in the mean over several: examples, as a rule.

    A loss that divides by something else tells by ``weight_of(output, target)``; it
    gives ``None`` where the loss of a batch is no mean over parts of it.
    """
    tell: Callable[[Value, Value], Value | None] | None = getattr(
        loss, "weight_of", None
    )
    if tell is not None:
        return tell(output, target)
    if not target.type.rank:
        return None
    examples = DimValue(target.type.shape[:1], scalar=True)()
    return Cast(output.type.dtype.value)(examples)


def class_numbers(name: str, output: TensorType) -> TensorType:
    """The type of targets that are classes: the output without axis 1.

    Raises:
        ConfigError: The output has no such axis.
    """
    if output.rank < 2:
        raise ConfigError(f"{name}: got an output {output}; want [N, C, ...]")
    return TensorType(DType.I64, (output.shape[0], *output.shape[2:]))


def mean(value: Value) -> Value:
    """The mean of all elements."""
    return ReduceMean(tuple(range(value.type.rank)), keepdims=False)(value)


def total(value: Value) -> Value:
    """The sum of all elements."""
    return ReduceSum(tuple(range(value.type.rank)), keepdims=False)(value)
