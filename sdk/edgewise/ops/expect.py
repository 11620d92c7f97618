"""What an importer took for granted, and a run checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgewise.errors import DTypeError, ShapeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.types import DType, TensorType, ValueType


class Expect(Op, name="expect"):
    """``x`` itself, where the condition is ``value``; else the run ends.

    Attributes:
        value: What the condition is taken to be.
        owner: The model's name for the If of which only this branch was converted.
    """

    objects = True
    value: bool
    owner: str

    def infer(self, x: ValueType | None, condition: ValueType | None) -> ValueType:
        if condition != TensorType(DType.BOOL, ()):
            raise DTypeError(f"{self.name}: got the condition {condition}; want bool[]")
        if x is None:
            raise self.refuse((x, condition), "no input left out")
        return x

    def assumption(self) -> str:
        return f"If {self.owner!r} chooses its {_branch(self.value)}"

    def reference(self, x: Any, condition: Array) -> Any:
        if bool(condition) is not self.value:
            raise ShapeError(
                f"If {self.owner!r} chose its {_branch(not self.value)}; want its"
                f" {_branch(self.value)}, the only one that was converted, for they"
                " differ in their number of axes; where sizes decide, convert with"
                " input_shapes"
            )
        return x

    @staticmethod
    def samples() -> Iterator[Sample]:
        """None: samples are arrays, and this takes whatever a branch gives."""
        return iter(())


def _branch(value: bool) -> str:
    return "then_branch" if value else "else_branch"
