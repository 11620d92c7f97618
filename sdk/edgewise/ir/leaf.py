"""Leaves: values that no op of a graph computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.op import Array, Op, Sample
from edgewise.types import TensorType


class Leaf(Op):
    """A value that no op of the graph computes."""

    def infer(self, *types: TensorType) -> TensorType:
        raise InternalError(f"{self.name} has its type from where it was made")

    def reference(self, *inputs: Array) -> Array:
        raise InternalError(f"{self.name} has its array from the caller")

    @staticmethod
    def samples() -> Iterator[Sample]:
        return iter(())


class Input(Leaf, name="input"):
    """A tensor the caller brings, called ``key``."""

    key: str


class Variable(Leaf, name="variable"):
    """A tensor of the module, called ``key``: stored, shared by functions, mutable."""

    key: str


class Constant(Leaf, name="constant"):
    """A tensor that never changes; equal bytes are equal constants."""

    def __init__(self, array: Array) -> None:
        super().__init__()
        # What nobody may write, such as a mapped file, is shared.
        kept = array.copy() if array.flags.writeable else array
        frozen = np.ascontiguousarray(kept).reshape(array.shape)
        frozen.flags.writeable = False
        object.__setattr__(self, "array", frozen)

    array: Array

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Constant)
            and self.array.dtype == other.array.dtype
            and self.array.shape == other.array.shape
            and self._bytes() == other._bytes()
        )

    def __hash__(self) -> int:
        return hash((self.array.dtype.str, self.array.shape, self._bytes()[:64]))

    def __repr__(self) -> str:
        return f"constant({self.array.dtype}{list(self.array.shape)})"

    def _bytes(self) -> bytes:
        if self.array.dtype == object:
            return repr(self.array.tolist()).encode()
        return self.array.tobytes()


Constant.fields = ()
