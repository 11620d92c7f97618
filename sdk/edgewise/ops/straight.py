"""Values whose gradients belong to others: what rounds or jumps in training."""

from __future__ import annotations

from collections.abc import Iterator

from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import FLOATS, want
from edgewise.types import TensorType


class StraightThrough(Op, name="straight_through"):
    """``y`` itself; its gradient is that of ``x``, or nobody's where there is no ``x``.

    The straight-through estimator (Bengio et al., 2013): ``y`` is ``x`` rounded.
    """

    view = True

    def infer(self, y: TensorType, x: TensorType | None = None) -> TensorType:
        want(self, (y,), FLOATS)
        if x is not None and x != y:
            raise self.refuse((y, x), "two tensors of one type")
        return y

    def reference(self, y: Array, x: Array | None = None) -> Array:
        del x
        return y.copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for shape in ((), (0,), (7,), (3, 17)):
            pair = cases.floats(*shape), cases.floats(*shape)
            yield Sample(StraightThrough(), pair)
            yield Sample(StraightThrough(), (pair[0], None))
