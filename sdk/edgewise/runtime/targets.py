"""Outputs written to the caller's arrays: directly where memory allows, else copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.op import Array


class Targets:
    """Where a run writes, given some arrays of the caller.

    Args:
        names: Names of all outputs.
        fresh: Our own arrays for all outputs, of the right types; no array where an
            output is none.
        out: The caller's arrays, by output name.
        inputs: What the run reads; a target that overlaps one is written at the end.

    Attributes:
        arrays: What the run is to write.
    """

    def __init__(
        self,
        names: Sequence[str],
        fresh: Sequence[Any],
        out: Mapping[str, Array],
        inputs: Sequence[Any],
    ) -> None:
        if not isinstance(out, Mapping):
            kind = type(out).__name__
            raise DTypeError(f"out: got {kind}; want arrays by output name")
        unknown = [name for name in out if name not in names]
        if unknown:
            raise ShapeError(f"{unknown[0]!r} is not an output; want some of {names}")
        self.arrays, self._fresh = list(fresh), tuple(fresh)
        self._given = [out.get(name) for name in names]
        taken = [array for array in inputs if isinstance(array, np.ndarray)]
        for position, given in enumerate(self._given):
            if given is None:
                continue
            _check(names[position], given, fresh[position])
            apart = not any(np.may_share_memory(given, other) for other in taken)
            if given.flags.c_contiguous and given.flags.aligned and apart:
                self.arrays[position] = given
            taken.append(given)

    def copied(self) -> list[Any]:
        """All outputs, where those of our own are filled already."""
        self.arrays = list(self._fresh)
        return self.finish()

    def finish(self) -> list[Any]:
        """Copy what could not be written directly; all outputs."""
        results = []
        for array, given in zip(self.arrays, self._given, strict=True):
            if given is not None and given is not array:
                given[...] = array
            results.append(array if given is None else given)
        return results


def _check(name: str, given: object, wanted: Any) -> None:
    if not isinstance(wanted, np.ndarray):
        raise DTypeError(f"out[{name!r}]: this output is no tensor; leave it out")
    want = f"want a writable array {wanted.dtype}{list(wanted.shape)}"
    if not isinstance(given, np.ndarray) or given.dtype != wanted.dtype:
        kind = getattr(given, "dtype", type(given).__name__)
        raise DTypeError(f"out[{name!r}]: got {kind}; {want}")
    if given.shape != wanted.shape or not given.flags.writeable:
        kind = "" if given.flags.writeable else "read-only "
        raise ShapeError(f"out[{name!r}]: got {kind}{list(given.shape)}; {want}")
