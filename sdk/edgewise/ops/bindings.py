"""Sizes read from values: what a shape computed by the graph itself turns into."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import symbol
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops.checks import want
from edgewise.types import DType, TensorType


class ReadDims(Op, name="read_dims"):
    """``x`` itself; from here on, symbol ``names[i]`` has the size ``x[i]``.

    A value below zero, or beyond any memory, ends the run.
    """

    view = True
    binds = True
    names: tuple[str, ...]

    def infer(self, x: TensorType) -> TensorType:
        for name in self.names:
            symbol(name)
        count = len(self.names)
        want(self, (x,), frozenset({DType.I64}))
        if (x.shape or (1,)) != (count,):
            raise self.refuse((x,), f"i64[{count}], or a scalar for one name")
        if not count or len(set(self.names)) != count:
            raise self.refuse((x,), f"different names, not {self.names}")
        return x

    def gives(self) -> tuple[str, ...]:
        return self.names

    def reference(self, x: Array) -> Array:
        return x.view()

    @staticmethod
    def samples() -> Iterator[Sample]:
        yield Sample(ReadDims(("n",)), (np.asarray([3]),))
        yield Sample(ReadDims(("n",)), (np.asarray(3),))
        yield Sample(ReadDims(("n", "m")), (np.asarray([0, 2**40]),))
