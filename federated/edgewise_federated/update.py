"""What a device sends: the change of its parameters, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array

Arrays = Mapping[str, Array]


class Layout:
    """Names and shapes of the parameters that travel, in their order.

    Attributes:
        shapes: By name.
        size: Numbers in all.
        hash: Of names and shapes: two ends with the same can talk.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = dict(shapes)
        self.size = sum(int(np.prod(shape)) for shape in shapes.values())
        self.hash = crc32(repr(sorted(self.shapes.items())).encode())

    def flat(self, arrays: Arrays) -> Array:
        """All numbers in one array."""
        parts = [np.ravel(np.asarray(arrays[name])) for name in self.shapes]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def named(self, flat: Array) -> dict[str, Array]:
        """Arrays by name of all numbers."""
        return dict(self._parts(flat))

    def _parts(self, flat: Array) -> Iterator[tuple[str, Array]]:
        at = 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
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
            if not np.isfinite(arrays[name]).all():
                raise FederatedError(f"update of {name!r}: got numbers without end")
        norm = float(np.linalg.norm(self.flat(arrays)))
        if most is not None and norm > most:
            raise FederatedError(f"an update of norm {norm:.3g}; want at most {most:g}")


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
