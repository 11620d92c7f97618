"""Values that are Python objects: strings, sequences, optionals.

Within, nobody writes to an array that is part of one, so lists may share them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, count
from operator import attrgetter, not_
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

_OWNS = attrgetter("flags.owndata")
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
        for index in compress(count(), map(not_, map(_OWNS, value))):
            kept[index] = np.array(value[index])
        return kept
    if value is None or (isinstance(value, np.ndarray) and value.flags.owndata):
        return value
    return np.array(value)
