"""Arrays from the caller: the right names and element types, contiguous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.op import Array
from edgewise.runtime import objects
from edgewise.types import TensorType, ValueType

Shapes = tuple[tuple[int, ...], ...]


class Inputs:
    """What a function wants of its caller.

    Args:
        names: Names of the inputs, in order.
        types: Their types; sizes may be symbols.
        limit: Bytes that an array may take if it must be copied.
    """

    def __init__(
        self, names: Sequence[str], types: Sequence[ValueType], limit: int
    ) -> None:
        self.names = tuple(names)
        self._limit = limit
        self.types = tuple(types)
        self._wanted = tuple(
            (name, type_.dtype.numpy)
            for name, type_ in zip(names, types, strict=True)
            if isinstance(type_, TensorType) and not type_.is_object
        )
        self._plain = len(self._wanted) == len(self.names)

    def values(self, feed: Mapping[str, Any]) -> list[Any]:
        """What a feed holds, in order: arrays are contiguous, of the right elements.

        Raises:
            ShapeError: An input is missing, or a name is not an input.
            DTypeError: Element types that do not fit.
        """
        if self._plain:
            return self._arrays(feed)
        self._check_names(feed)
        for name in self.names:
            self._want_room(name, feed[name])
        pairs = zip(self.names, self.types, strict=True)
        return [
            objects.take(name, feed[name], type_, _convert) for name, type_ in pairs
        ]

    def shapes(self, values: Sequence[Any]) -> Shapes:
        """Shapes of the inputs; those of what is no array are empty."""
        if self._plain:
            return tuple([value.shape for value in values])
        return tuple([getattr(value, "shape", ()) for value in values])

    def _arrays(self, feed: Mapping[str, Any]) -> list[Array]:
        arrays = []
        try:
            for name, dtype in self._wanted:
                array = feed[name]
                if type(array) is not np.ndarray or array.dtype is not dtype:
                    array = _convert(name, array, dtype)
                flags = array.flags
                if not (flags.c_contiguous and flags.aligned):
                    self._want_room(name, array)
                    array = np.require(array, requirements=("C", "A"))
                arrays.append(array)
        except (KeyError, TypeError, IndexError):
            self._check_names(feed)
            raise
        if len(feed) != len(arrays):
            self._check_names(feed)
        return arrays

    def _want_room(self, name: str, given: object) -> None:
        """Raise for what is too large to copy: a view that repeats itself may be."""
        if isinstance(given, np.ndarray) and given.nbytes > self._limit:
            raise ShapeError(
                f"input {name!r}: got {list(given.shape)}, which must be copied to be"
                f" contiguous; its {given.nbytes} bytes are beyond the limit of"
                f" {self._limit}; give smaller or contiguous arrays, or a memory_limit"
            )

    def _check_names(self, feed: object) -> None:
        wanted = ", ".join(map(repr, self.names)) or "none"
        if not isinstance(feed, Mapping):
            raise DTypeError(
                f"run got a {type(feed).__name__}; want a mapping of input names"
                f" ({wanted}) to arrays"
            )
        missing = [name for name in self.names if name not in feed]
        if missing:
            raise ShapeError(f"input {missing[0]!r} is missing; want inputs {wanted}")
        unknown = [name for name in feed if name not in self.names]
        if unknown:
            raise ShapeError(f"{unknown[0]!r} is not an input; want inputs {wanted}")


def _convert(name: str, given: object, dtype: np.dtype[Any]) -> Array:
    """An array of the wanted type, if that changes no value.

    An array has its type for a reason: another one is an error.  Python's numbers and
    lists have none, so they are taken where they fit exactly.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ShapeError(f"input {name!r}: got a ragged list; want {dtype}") from error
    if array.dtype.newbyteorder("=") == dtype:
        return array.astype(dtype, copy=False)
    untyped = not isinstance(given, np.generic) and not hasattr(given, "__array__")
    if untyped and (array.dtype.kind in "biuf" or array.size == 0):
        with np.errstate(all="ignore"):
            fitted = array.astype(dtype)
        if _equal(fitted, array):
            return fitted
        raise DTypeError(
            f"input {name!r}: got {type(given).__name__} of {array.dtype}, not all"
            f" exact in {dtype}; want an array of {dtype}"
        )
    raise DTypeError(f"input {name!r}: got {array.dtype}; want {dtype}")


def _equal(fitted: Array, array: Array) -> bool:
    """Whether a conversion changed no value; True is not 1."""
    if array.size == 0:
        return True
    if (array.dtype.kind == "b") != (fitted.dtype.kind == "b"):
        return False
    with np.errstate(all="ignore"):
        back = fitted.astype(array.dtype)
    nan = array.dtype.kind == "f"
    # Also the way back: comparing a whole number with a float32 may round it first.
    pairs = ((fitted, array), (back, array))
    return all(np.array_equal(a, b, equal_nan=nan) for a, b in pairs)
