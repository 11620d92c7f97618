"""Whether an array, a list or None is of a type."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from edgewise.ir.op import Array
from edgewise.types import (
    DType,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)


def fits(value: object, type_: ValueType | Unranked) -> bool:
    """Whether ``value`` may be of ``type_``, where an unknown size may be any."""
    if isinstance(type_, OptionalType):
        return value is None or fits(value, type_.element)
    if isinstance(type_, SequenceType):
        return isinstance(value, list) and all(fits(x, type_.element) for x in value)
    if not is_array(value) or value.dtype != type_.dtype.numpy:
        return False
    if isinstance(type_, TensorType) and (
        len(value.shape) != type_.rank
        or any(
            isinstance(dim, int) and dim != size
            for dim, size in zip(type_.shape, value.shape, strict=True)
        )
    ):
        return False
    return type_.dtype is not DType.STRING or all(
        isinstance(x, str) for x in value.flat
    )


def is_array(value: object) -> TypeGuard[Array]:
    """Whether it is an array or one element of one, which is as good."""
    return isinstance(value, np.ndarray | np.generic)


def described(value: Any) -> str:
    """A value as types are written, for messages."""
    if is_array(value):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list):
        return f"sequence({', '.join(sorted({described(x) for x in value}))})"
    return "nothing" if value is None else f"a {type(value).__name__}"
