"""What rules share: constants beside a value, sums back to the shape of an input."""

from __future__ import annotations

from edgewise.errors import TrainabilityError
from edgewise.ir.graph import Value
from edgewise.ops import Expand, ReduceSum, Reshape
from edgewise_trainer.terms import as_float, scalar, zeros

__all__ = ["as_float", "scalar", "spread", "sum_to", "zeros"]


def sum_to(grad: Value, like: Value) -> Value:
    """The gradient of an input that was broadcast: summed over what it was spread to.

    Raises:
        TrainabilityError: Only a run knows over which axes it was.
    """
    given, wanted = grad.type.shape, like.type.shape
    if given == wanted:
        return grad
    ahead = len(given) - len(wanted)
    axes = list(range(ahead))
    for axis, size in enumerate(wanted):
        if size == 1 and given[ahead + axis] != 1:
            axes.append(ahead + axis)
        elif size not in (1, given[ahead + axis]):
            raise TrainabilityError(
                f"{like}: only a run knows whether it is broadcast to {grad.type}; "
                "fix its sizes when converting"
            )
    total = ReduceSum(tuple(axes), keepdims=True)(grad)
    return total if len(given) == len(wanted) else Reshape(wanted)(total)


def spread(value: Value, axes: tuple[int, ...], like: Value, *, kept: bool) -> Value:
    """What was reduced over ``axes``, again in the shape of ``like``."""
    shape = like.type.shape
    ones = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    if not kept:
        value = Reshape(ones)(value)
    return Expand(shape)(value)
