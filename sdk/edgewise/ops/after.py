"""Order between values that do not need each other."""

from __future__ import annotations

from collections.abc import Iterator

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import BOOLS, NUMBERS, want
from edgewise.types import TensorType


class After(Op, name="after"):
    """``x`` itself, once ``other`` is there: what reads it runs no earlier.

    Memory is planned in the order in which nodes run; what is made again for late
    readers must not be made early.
    """

    view = True

    def infer(self, x: TensorType, other: TensorType) -> TensorType:
        want(self, (x, other), NUMBERS | BOOLS)
        return x

    def reference(self, x: Array, other: Array) -> Array:
        del other
        return x.copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((), (0,), (7,), (3, 17)):
            yield Sample(After(), (cases.floats(*shape), cases.floats(5)))
        yield Sample(After(), (cases.whole(3, 18, dtype="int8"), cases.floats(2)))
