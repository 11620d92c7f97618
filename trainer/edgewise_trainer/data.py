"""Batches out of what users have: arrays, or anything that gives batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from edgewise.errors import ConfigError, DTypeError, ShapeError
from edgewise.ir.op import Array
from edgewise_trainer.wanted import as_array, converted, want_count

Inputs: TypeAlias = "Array | Mapping[str, Array]"
Batch: TypeAlias = "tuple[Inputs, Array]"
# (inputs, targets) of all examples; or batches, which need not fit into memory.
Data: TypeAlias = "tuple[Inputs, Array] | Iterable[Batch]"
BATCH_SIZE = 32  # where nothing is said


def batches(
    data: Data, size: int, order: np.random.Generator | None, first: int = 0
) -> Iterator[Batch]:
    """The batches of one pass.

    Args:
        data: Inputs and targets of all examples, or an iterable of batches, which
            comes as it is.
        size: Examples of a batch; the last has what is left.
        order: Shuffles examples; ``None``: as they lie.
        first: Batches to pass over, as those were trained before.

    Raises:
        ShapeError: Inputs and targets differ in number, or there are none.
        ConfigError: Batches have no size, or what gives them is of another kind.
    """
    want_count("batch_size", size)
    if isinstance(data, tuple) and len(data) == 2:
        inputs, targets = cast("Batch", data)
        yield from _cut(inputs, as_array("targets", targets), size, order, first)
        return
    if not isinstance(data, Iterable):
        raise ConfigError(
            f"data: got {type(data).__name__}; want (inputs, targets) or batches"
        )
    number = -1
    for number, batch in enumerate(data):
        if not isinstance(batch, tuple) or len(batch) != 2:
            raise ConfigError(f"batch {number}: want a pair of inputs and targets")
        if number >= first:
            yield batch
    if number < 0:
        raise ShapeError(
            "data: got no batches; a generator ends after one pass, want a list"
        )


def pairs(
    data: Data, size: int, names: Sequence[str]
) -> Iterator[tuple[Mapping[str, Array], Array]]:
    """The batches of one pass as they lie, inputs by name."""
    for inputs, target in batches(data, size, None):
        yield named(inputs, names), target


def batch_of(*sizes: int | None) -> int:
    """The first size of batches that was given."""
    return next((size for size in sizes if size is not None), BATCH_SIZE)


def as_target(target: object, dtype: np.dtype[Any]) -> Array:
    """A target of the type that a loss wants: whole for whole, real for real.

    Raises:
        DTypeError: It is of the other kind.
    """
    array = as_array("target", target)
    kinds = {"i": "iu", "f": "f"}.get(dtype.kind, dtype.kind)
    if array.dtype.kind not in kinds:
        raise DTypeError(f"target: got {array.dtype}; want {dtype}{_meant(dtype)}")
    return converted("target", array, dtype)


def named(inputs: Inputs, names: Sequence[str]) -> Mapping[str, Array]:
    """Inputs by name, where the only one may come without.

    Raises:
        ShapeError: There are several, or one is missing or no array.
    """
    if isinstance(inputs, Mapping):
        missing = [name for name in names if name not in inputs]
        if missing:
            raise ShapeError(
                f"input {missing[0]!r} is missing; got {', '.join(map(str, inputs))}"
            )
        for name, array in inputs.items():
            as_array(f"input {name!r}", array)
        return inputs
    as_array("inputs", inputs)
    if len(names) != 1:
        raise ShapeError(f"got one array; want a mapping of inputs {names}")
    return {names[0]: inputs}


def _meant(dtype: np.dtype[Any]) -> str:
    """What targets of a type are, for those who brought others."""
    if dtype.kind == "i":
        return (
            ", the numbers of classes; where targets are real numbers, choose another "
            "loss, as 'mse'"
        )
    return f", as of target.astype('{dtype}')" if dtype.kind == "f" else ""


def examples(targets: object) -> int:
    """How many examples a batch has.

    Raises:
        ShapeError: It has none.
    """
    count = len(np.atleast_1d(as_array("target", targets)))
    if not count:
        raise ShapeError("data: got a batch of no examples; leave it out")
    return count


def _cut(
    inputs: Inputs,
    targets: Array,
    size: int,
    order: np.random.Generator | None,
    first: int,
) -> Iterator[Batch]:
    count = counted(inputs, targets)
    places = np.arange(count) if order is None else order.permutation(count)
    for start in range(first * size, count, size):
        chosen = places[start : start + size]
        yield taken(inputs, chosen), targets[chosen]


def counted(inputs: Inputs, targets: Array) -> int:
    """How many examples there are.

    Raises:
        ShapeError: There are none, or not as many inputs as targets.
    """
    if not targets.ndim:
        raise ShapeError("targets: got a single one; want an array, one an example")
    given = dict(inputs) if isinstance(inputs, Mapping) else {"inputs": inputs}
    count = len(targets)
    for name, value in given.items():
        array = as_array(name, value)
        found = len(array) if array.ndim else 0
        if found != count:
            raise ShapeError(f"{name}: got {found} examples; want {count} targets")
    if not count:
        raise ShapeError("data: got no examples")
    return count


def taken(inputs: Inputs, chosen: Array) -> Inputs:
    """The examples of some rows."""
    if isinstance(inputs, Mapping):
        return {name: np.asarray(array)[chosen] for name, array in inputs.items()}
    return np.asarray(inputs)[chosen]
