"""Optionals: a value or none, which only a run knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.declared import Declared
from edgewise.types import (
    DType,
    OptionalType,
    TensorType,
    Unranked,
    ValueType,
    may_agree,
)


class OptionalOp(Op):
    """An op of optionals."""

    objects = True

    @staticmethod
    def samples() -> Iterator[Sample]:
        """None: samples are arrays, and these ops take what may be none."""
        return iter(())


class Optional(Declared, OptionalOp, name="optional"):
    """Its input as an optional; none of the declared type where it is left out."""

    def infer(self, x: ValueType | None = None) -> ValueType:
        (type_,) = self.declared()
        if not isinstance(type_, OptionalType):
            raise DTypeError(f"{self.name}: got {type_}; want to declare an optional")
        if x is not None and not may_agree(_inner(x), type_.element):
            raise self.refuse((x,), f"what {type_} holds")
        return type_

    def reference(self, x: Any = None) -> Any:
        return x


class OptionalHasElement(OptionalOp, name="optional_has_element"):
    """Whether there is something, as a bool scalar."""

    def infer(self, x: ValueType | None = None) -> TensorType:
        del x
        return TensorType(DType.BOOL, ())

    def reference(self, x: Any = None) -> Array:
        return np.asarray(x is not None)


class OptionalGetElement(Declared, OptionalOp, name="optional_get_element"):
    """What an optional holds, of the declared type; none of it ends the run."""

    dynamic = True

    def infer(self, x: ValueType) -> ValueType:
        (type_,) = self.declared()
        if not may_agree(type_, _inner(x)):
            raise self.refuse((x,), f"what may hold {type_}")
        return type_

    def reference(self, x: Any) -> Any:
        if x is None:
            raise ShapeError(f"{self.name}: got an empty optional; want an element")
        return x


def _inner(x: ValueType) -> ValueType | Unranked:
    return x.element if isinstance(x, OptionalType) else x
