"""What a device sends: the change of its parameters, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array

STRIDE = 16  # of a statistic in a round, as a multiple of what it is
Arrays = Mapping[str, Array]
Shapes = Mapping[str, tuple[int, ...]]


class Layout:
    """Names and shapes of the numbers that travel, in their order.

    Args:
        shapes: By name, of what is trained.
        means: The same of running means of batch norms, which follow the data.
        variances: The same of running variances.

    Attributes:
        shapes: By name, of all.
        statistics: Names of means and variances.
        size: Numbers in all.
        trained: How many of them are trained; they come first.
        positive: Where variances begin, which are never below 0; they come last.
        hash: Of names and shapes: two ends with the same can talk.
    """

    def __init__(
        self,
        shapes: Shapes,
        means: Shapes | None = None,
        variances: Shapes | None = None,
    ) -> None:
        parts = (dict(shapes), dict(means or {}), dict(variances or {}))
        self.shapes = {name: shape for part in parts for name, shape in part.items()}
        sizes = [sum(map(_size, part.values())) for part in parts]
        self._kinds, self.statistics = parts, (*parts[1], *parts[2])
        self.size, self.trained = sum(sizes), sizes[0]
        self.positive = self.size - sizes[2]
        self.hash = crc32(repr(sorted(self.shapes.items())).encode())

    def only(self, names: Collection[str]) -> Layout:
        """The part that has some of the names."""
        kinds = self._kinds
        return Layout(*({n: s for n, s in k.items() if n in names} for k in kinds))

    def learned(self) -> Layout:
        """The part that is trained: without statistics."""
        return Layout(self._kinds[0])

    def filled(self, arrays: Arrays) -> Array:
        """All numbers in one array, zero where an array is missing."""
        shapes = self.shapes.items()
        zeros = {n: np.zeros(s, np.float32) for n, s in shapes if n not in arrays}
        return self.flat({**zeros, **arrays})

    def flat(self, arrays: Arrays) -> Array:
        """All numbers in one array."""
        parts = [np.ravel(np.asarray(arrays[name])) for name in self.shapes]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def named(self, flat: Array) -> dict[str, Array]:
        """Arrays by name, of all numbers or of the trained ones alone."""
        return dict(self._parts(flat))

    def reach(self, values: Array) -> Array:
        """In what units changes are added up as whole numbers.

        Statistics have the scale of what a layer sees, and come far from where they
        begin in one round; what is trained moves by little.
        """
        found = np.ones(self.size)
        whole = np.abs(values[self.trained :])
        found[self.trained :] = np.maximum(STRIDE * whole, 1.0)
        return found

    def _parts(self, flat: Array) -> Iterator[tuple[str, Array]]:
        at = 0
        for name, shape in self.shapes.items():
            if at == flat.size:
                return
            size = _size(shape)
            yield name, flat[at : at + size].reshape(shape)
            at += size

    def check(self, arrays: Arrays, most: float | None = None) -> None:
        """Raise unless arrays have the names and shapes, and finite numbers.

        Args:
            arrays: A device's.
            most: The largest norm of all numbers; None: any.

        Raises:
            FederatedError: They do not.
        """
        if arrays.keys() != self.shapes.keys():
            odd = sorted(arrays.keys() ^ self.shapes.keys())
            raise FederatedError(f"an update has other parameters: {', '.join(odd)}")
        for name, shape in self.shapes.items():
            got = np.shape(arrays[name])
            if got != shape:
                raise FederatedError(f"update of {name!r}: got {got}; want {shape}")
            want_numbers(f"update of {name!r}", np.asarray(arrays[name]))
        norm = float(np.linalg.norm(self.flat(arrays)))
        if most is not None and norm > most:
            raise FederatedError(f"an update of norm {norm:.3g}; want at most {most:g}")


def want_numbers(what: str, array: Array) -> None:
    """Raise unless all of an array are numbers that float32 holds.

    Raises:
        FederatedError: They are not.
    """
    if array.dtype.kind not in "iuf":
        raise FederatedError(f"{what}: got {array.dtype}; want numbers")
    with np.errstate(over="ignore"):
        finite = np.isfinite(array.astype(np.float32, copy=False)).all()
    if not finite:
        raise FederatedError(f"{what}: got numbers without end")


class Update(NamedTuple):
    """What arrived of a device.

    Attributes:
        arrays: The change of each parameter, as decoded.
        examples: How many it learned from.
        loss: Mean loss of its last pass.
        bytes: What travelled.
    """

    arrays: Arrays
    examples: int
    loss: float
    bytes: int = 0

    def replace(self, **changes: Any) -> Self:
        """The update with something changed."""
        return self._replace(**changes)


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))
