"""Options and arrays as they must be."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.op import Array
from edgewise.wanted import (
    LARGEST,
    fitting,
    want_count,
    want_from_0,
    want_kinds,
    want_number,
    want_part,
    want_positive,
)

__all__ = [
    "LARGEST",
    "as_array",
    "converted",
    "fitting",
    "want_count",
    "want_from_0",
    "want_kinds",
    "want_number",
    "want_part",
    "want_positive",
]


def as_array(name: str, value: Any) -> Array:
    """What users have as an array.

    Raises:
        ShapeError: Its rows differ in length.
        DTypeError: It holds no numbers.
    """
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"{name}: got a {type(value).__name__} whose parts differ in shape; want "
            "one array"
        ) from error
    except (TypeError, OverflowError) as error:
        raise DTypeError(f"{name}: got no numbers: {error}") from error


def converted(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """An array of another type of its kind, which must hold all of its numbers.

    Raises:
        DTypeError: It does not.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = array.astype(dtype, copy=False)
    if found is not array and dtype.kind in "iuf" and dtype.itemsize < _needed(array):
        lost = (
            np.isinf(found) & ~np.isinf(array) if dtype.kind == "f" else found != array
        )
        if lost.any():
            raise DTypeError(f"{name}: holds {array[lost].flat[0]}; want {dtype}")
    return found


def _needed(array: Array) -> int:
    """Bytes of the whole numbers or floats that hold what an array may hold."""
    return array.dtype.itemsize + (array.dtype.kind == "u")
