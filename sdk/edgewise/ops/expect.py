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
        owner: The model's name for the node that was converted for this alone.
        claim: What is taken for granted, as a sentence; empty for an If of which only
            one branch was converted.
    """

    objects = True
    value: bool
    owner: str
    claim: str = ""

    def infer(self, x: ValueType | None, condition: ValueType | None) -> ValueType:
        if condition != TensorType(DType.BOOL, ()):
            raise DTypeError(f"{self.name}: got the condition {condition}; want bool[]")
        if x is None:
            raise self.refuse((x, condition), "no input left out")
        return x

    def assumption(self) -> str:
        if self.claim:
            return self.claim
        return f"If {self.owner!r} chooses its {_branch(self.value)}"

    def reference(self, x: Any, condition: Array) -> Any:
        if bool(condition) is not self.value:
            raise ShapeError(self._broken())
        return x

    def _broken(self) -> str:
        if self.claim:
            return (
                f"the model was converted such that {self.claim}; that does not hold"
                " for the sizes of this run: convert with input_shapes"
            )
        return (
            f"If {self.owner!r} chose its {_branch(not self.value)}; want its"
            f" {_branch(self.value)}, the only one that was converted, for they"
            " differ in their number of axes; where sizes decide, convert with"
            " input_shapes"
        )

    @staticmethod
    def samples() -> Iterator[Sample]:
        """None: samples are arrays, and this takes whatever a branch gives."""
        return iter(())


def _branch(value: bool) -> str:
    return "then_branch" if value else "else_branch"
