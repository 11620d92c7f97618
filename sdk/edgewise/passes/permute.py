"""Values on permuted axes: the arithmetic of transposes."""

from __future__ import annotations

import numpy as np

from edgewise.dims import Dim, Shape
from edgewise.ir.graph import Value, Variable, constant, constant_array
from edgewise.ops.shape import Reshape, Transpose


def permutation(value: Value | None) -> tuple[int, ...] | None:
    """The axes of the transpose that makes ``value``; ``None`` where none does."""
    if value is None or not isinstance(value.op, Transpose):
        return None
    return value.op.axes


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes ``axes``."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


def compose(inner: tuple[int, ...], outer: tuple[int, ...]) -> tuple[int, ...]:
    """The one transpose that does ``inner``, then ``outer``."""
    return tuple(inner[axis] for axis in outer)


def moves_ones_only(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> bool:
    """Whether the transpose keeps all axes of more than one element in order."""
    kept = [axis for axis in axes if shape[axis] != 1]
    return kept == sorted(kept)


def transposed(value: Value, axes: tuple[int, ...], label: str = "") -> Value:
    """``value`` on permuted axes."""
    if axes == tuple(range(len(axes))):
        return value
    return Transpose(axes)(value, label=label)


def reshaped(value: Value, shape: Shape, label: str = "") -> Value:
    """``value`` in another shape."""
    return value if shape == value.type.shape else Reshape(shape)(value, label=label)


def on_axes(value: Value, axes: tuple[int, ...], label: str) -> Value | None:
    """What ``value`` is before ``Transpose(axes)``; ``None`` where that costs work.

    A value of fewer axes is one that broadcasts.  Free are: a transpose undone, axes of
    size 1 moved, a constant.  A variable is moved once, in ``prepare``.
    """
    shape = value.type.shape
    if all(size == 1 for size in shape):
        return value
    if len(shape) > len(axes):
        return None
    if permutation(value) == axes:
        return value.node.inputs[0]
    if len(shape) < len(axes):
        shape = (*(1,) * (len(axes) - len(shape)), *shape)
    back = inverse(axes)
    target = tuple(shape[axis] for axis in back)
    if moves_ones_only(shape, back):
        return (
            value if target == value.type.shape else Reshape(target)(value, label=label)
        )
    array = constant_array(value)
    if array is not None:
        moved = np.ascontiguousarray(array.reshape(shape).transpose(back))  # type: ignore[arg-type]  # constants have known sizes
        return constant(moved, value.node.label)
    if isinstance(value.op, Variable):
        wide = (
            value if shape == value.type.shape else Reshape(shape)(value, label=label)
        )
        return Transpose(back)(wide, label=label)
    return None
