"""What a strategy remembers, found by walking its attributes; as plain values and back.

Nothing is pickled. Numbers, texts, arrays, Flower's records, and lists, tuples and
dictionaries of those are written; what keeps a memory of its own (strategies inside
strategies, privacy accountants, generators of random numbers) is asked for it, and gets
it back in place. Functions and members of enumerations are settings: a strategy that
goes on keeps its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Array as Wire
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp.strategy import Strategy

from edgewise.errors import CheckpointError
from edgewise.ir.op import Array

RECORDS = {kind.__name__: kind for kind in (ArrayRecord, ConfigRecord, MetricRecord)}
SETTINGS = (Enum, type, FunctionType, BuiltinFunctionType, MethodType)
PLAIN = {type(None), bool, int, float, str}
Tree = Any  # of what JSON holds
Arrays = dict[str, Array]


class Memory(NamedTuple):
    """How the memory of a kind of object is read and set."""

    holds: Callable[[Any], bool]
    read: Callable[[Any], Any]
    set: Callable[[Any, Any], object]


def _attributes(owner: Strategy) -> dict[str, Any]:
    return {k: v for k, v in vars(owner).items() if not isinstance(v, SETTINGS)}


def _set_attributes(owner: Strategy, found: Mapping[str, Any]) -> None:
    for name in _attributes(owner).keys() - found.keys():
        delattr(owner, name)
    for name, value in found.items():
        setattr(owner, name, value)


MEMORIES = {
    "strategy": Memory(
        lambda it: isinstance(it, Strategy),
        _attributes,
        _set_attributes,
    ),
    "accountant": Memory(
        lambda it: hasattr(it, "state_dict") and hasattr(it, "load_state_dict"),
        lambda it: it.state_dict(),
        lambda it, found: it.load_state_dict(found),
    ),
    "generator": Memory(
        lambda it: isinstance(it, np.random.Generator),
        lambda it: it.bit_generator.state,
        lambda it, found: setattr(it.bit_generator, "state", found),
    ),
    "random": Memory(
        lambda it: isinstance(it, random.Random),
        lambda it: it.getstate(),
        lambda it, found: it.setstate(found),
    ),
}


class Writer:
    """Makes plain values; arrays go beside them.

    Attributes:
        arrays: By the place where they were found.
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def value(self, value: Any, place: str) -> Tree:
        """What JSON can hold of a value.

        Raises:
            CheckpointError: Something of it cannot be written; it says what.
        """
        if isinstance(value, np.generic | np.ndarray | bytes):
            return self._array(value, place)
        if type(value) in PLAIN:
            return value
        if type(value) in (list, tuple):
            rows = [self.value(row, f"{place}[{i}]") for i, row in enumerate(value)]
            return {type(value).__name__: rows}
        if isinstance(value, Wire):
            data = self.value(value.data, f"{place}.data")
            return {"wire": [value.dtype, list(value.shape), value.stype, data]}
        if type(value) is dict or type(value) in RECORDS.values():
            return {type(value).__name__: self._pairs(value, place)}
        for name, memory in MEMORIES.items():
            if memory.holds(value):
                return {name: self.value(memory.read(value), place)}
        raise CheckpointError(
            f"{place}: got a {type(value).__name__}, which no checkpoint holds; want"
            " numbers, texts, arrays, records, or lists and dictionaries of those"
        )

    def _pairs(self, value: Mapping[Any, Any], place: str) -> list[list[Tree]]:
        """Pairs, for keys need not be texts."""
        return [
            [self.value(key, f"{place}#{i}"), self.value(row, f"{place}.{key}")]
            for i, (key, row) in enumerate(value.items())
        ]

    def _array(self, value: np.generic | Array | bytes, place: str) -> Tree:
        whole = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        found = np.array(whole)
        if found.dtype.hasobject:
            raise CheckpointError(f"{place}: got an array of objects")
        self.arrays[place] = found
        kinds = {bytes: "bytes", np.ndarray: "array"}
        return {kinds.get(type(value), "scalar"): place}


class Reader:
    """Makes values again of what a ``Writer`` gave.

    Args:
        arrays: Those of the writer.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays

    def value(self, tree: Tree, now: Any = None) -> Any:
        """The value that a tree stands for.

        Args:
            tree: What was written.
            now: What stands in its place: what keeps its own memory gets it back.

        Raises:
            CheckpointError: Another kind of thing stands there.
        """
        if not isinstance(tree, dict):
            return tree
        ((kind, content),) = tree.items()
        if kind in MEMORIES:
            return self._set(kind, content, now)
        if kind in ("list", "tuple"):
            rows = [self.value(row) for row in content]
            return rows if kind == "list" else tuple(rows)
        if kind == "wire":
            dtype, shape, stype, data = content
            return Wire(dtype, tuple(shape), stype, self.value(data))
        if kind == "dict" or kind in RECORDS:
            olds = now if isinstance(now, dict) else {}
            pairs = [(self.value(key), row) for key, row in content]
            found = {key: self.value(row, olds.get(key)) for key, row in pairs}
            return RECORDS[kind](found) if kind in RECORDS else found
        array = self._arrays[content]
        if kind == "bytes":
            return array.tobytes()
        return array.copy() if kind == "array" else array[()]

    def _set(self, kind: str, content: Tree, now: Any) -> Any:
        memory = MEMORIES[kind]
        if not memory.holds(now):
            raise CheckpointError(
                f"a strategy has {now!r} where its checkpoint holds a {kind}"
            )
        memory.set(now, self.value(content, memory.read(now)))
        return now
