"""Values that are Python objects: strings, sequences, optionals.

Within, nobody writes to an array that is part of one, so lists may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, compress, count, repeat
from operator import attrgetter, is_not
from typing import Any

import numpy as np

from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.fit import described, fits
from edgewise.ir.op import Array
from edgewise.types import (
    DType,
    OptionalType,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)

_BASE, _NBYTES, _FLAT = map(attrgetter, ("base", "nbytes", "flat"))
# Makes an array of an element type of what the caller gave under a name.
Convert = Callable[[str, object, "np.dtype[Any]"], Array]


def take(
    name: str, given: object, type_: ValueType | Unranked, convert: Convert
) -> Any:
    """What the caller gave for an input, as values of ``type_`` are within.

    Raises:
        DTypeError: It is of another kind, or has other elements.
        ShapeError: A tensor of another shape.
    """
    if isinstance(type_, OptionalType):
        return None if given is None else take(name, given, type_.element, convert)
    if isinstance(type_, SequenceType):
        if not isinstance(given, list | tuple):
            raise DTypeError(
                f"input {name!r}: got a {type(given).__name__}; want a list: {type_}"
            )
        items = enumerate(given)
        return [take(f"{name}[{i}]", x, type_.element, convert) for i, x in items]
    array = (
        _strings(name, given)
        if type_.dtype is DType.STRING
        else convert(name, given, type_.dtype.numpy)
    )
    if not fits(array, type_) and isinstance(type_, TensorType):
        raise ShapeError(f"input {name!r}: got {described(array)}; want {type_}")
    return np.require(array, requirements=("C", "A"))


def _strings(name: str, given: object) -> Array:
    """An object array of texts."""
    array = np.asarray(given)
    if array.dtype.kind in "UT" or not array.size:
        return array.astype(object)
    wrong = {type(item).__name__ for item in array.flat if not isinstance(item, str)}
    if wrong or array.dtype != object:
        kind = ", ".join(sorted(wrong)) or str(array.dtype)
        fix = ": decode them first" if "bytes" in kind else ""
        raise DTypeError(
            f"input {name!r}: got {kind}; want an array of strings (str){fix}"
        )
    return array


class Room:
    """Bytes that the objects of one run take together.

    Args:
        limit: How many they may take.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._most = 0  # what they take where no two share an array

    def clear(self) -> None:
        """Begin with another run."""
        self._most = 0

    def hold(self, owner: str, value: Any, kept: Iterable[Any]) -> None:
        """Count what ``owner`` has made; ``kept`` is all that the run now keeps.

        Raises:
            ShapeError: There is no room for it.
        """
        self._most += _weight(_arrays(value))
        if self._most <= self._limit:
            return
        parts = {id(array): array for value in kept for array in _arrays(value)}
        self._most = sum(_weight([array]) for array in parts.values())
        if self._most > self._limit:
            raise ShapeError(
                f"{owner}: strings and sequences take {self._most} bytes with its"
                f" result; want at most {self._limit}, the session's memory_limit"
            )


def _arrays(value: Any) -> list[Array]:
    """The arrays that an object consists of: of one element type."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _weight(arrays: list[Array]) -> int:
    """Bytes that arrays take, at one a character."""
    # Without a line of Python for each: a loop may add one thing a turn.
    total: int = sum(map(_NBYTES, arrays))
    if arrays and arrays[0].dtype.hasobject:
        total += sum(map(len, chain.from_iterable(map(_FLAT, arrays))))
    return total


def copy(value: Any) -> Any:
    """A value for the caller to keep: it shares no memory with ours."""
    if isinstance(value, list):
        return [np.array(x) for x in value]
    return None if value is None else np.array(value)


def own(value: Any) -> Any:
    """A result of a reference as we keep it: views of the arena are copied."""
    if isinstance(value, list):
        if not set(map(type, value)) <= {np.ndarray}:
            return [own(x) for x in value]
        kept = list(value)
        # Without a line of Python for each: a loop may add one thing a turn.
        foreign = map(is_not, map(_BASE, value), repeat(None))
        for index in compress(count(), foreign):
            kept[index] = np.array(value[index])
        return kept
    if value is None or (isinstance(value, np.ndarray) and value.flags.owndata):
        return value
    return np.array(value)
