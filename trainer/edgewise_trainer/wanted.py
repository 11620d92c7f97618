"""Options as they must be: numbers in their range, counts, arrays."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from edgewise.errors import ConfigError, DTypeError, ShapeError
from edgewise.ir.op import Array

LARGEST = float(np.finfo(np.float32).max)  # steps reckon with their options in f32


def want_number(
    name: str,
    value: object,
    want: str = "a number",
    fits: Callable[[float], bool] = math.isfinite,
) -> None:
    """Raise ``ConfigError`` unless it is a real number that fits."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if fits(number) and (abs(number) <= LARGEST or math.isinf(number)):
            return
    raise ConfigError(f"{name}={value!r}: want {want}")


def want_from_0(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless it is a finite number from 0 on."""
    want_number(name, value, "a number from 0 on", lambda x: 0.0 <= x < math.inf)


def want_positive(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless it is a finite number above 0."""
    want_number(name, value, "a number above 0", lambda x: 0.0 < x < math.inf)


def want_part(name: str, value: object) -> None:
    """Raise ``ConfigError`` unless it is a part of what goes on."""
    want = "a number from 0 to below 1"
    want_number(name, value, want, lambda x: 0.0 <= x < 1.0)


def want_count(name: str, value: object, least: int = 1) -> None:
    """Raise ``ConfigError`` unless it is a whole number from ``least`` on."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]  # it is whole
        text = repr(value) if not whole or abs(int(value)) < 1 << 64 else "…"  # type: ignore[call-overload]  # likewise
        raise ConfigError(f"{name}={text}: want a whole number from {least} on")


def want_kinds(name: str, values: object, kind: type, want: str) -> None:
    """Raise ``ConfigError`` unless all of several are of a kind."""
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    if not several or not all(isinstance(value, kind) for value in values):  # type: ignore[attr-defined]  # it is iterable
        raise ConfigError(f"{name}={values!r}: want {want}")


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
