"""Linear layers and convolutions over reals whose weights are panels of few bits.

The same as ``linear`` and ``conv`` with the weights widened (``pack_narrow``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from edgewise.dims import floordiv
from edgewise.ir.op import Array, Cost, Sample
from edgewise.ops import cases
from edgewise.ops.checks import may_equal, want
from edgewise.ops.conv import Conv, with_epilogue
from edgewise.ops.epilogue import NAMES, parameters, want_epilogue
from edgewise.ops.matmul import InnerProducts, Linear
from edgewise.ops.pack import panels
from edgewise.ops.pack_narrow import (
    HALF,
    WIDTHS,
    PackNarrow,
    want_narrow,
    widened,
)
from edgewise.ops.pack_narrow import panels as narrow_panels
from edgewise.ops.windows import WINDOWS, OverWindows
from edgewise.types import DType, TensorType

F32 = frozenset({DType.F32})


class NarrowLinear(InnerProducts, name="narrow_linear"):
    """``x[..., K]`` by panels of few bits, then the epilogue."""

    in_place = (4,)
    columns: int
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0
    kind: str = HALF
    block: int = 32

    @property
    def plain(self) -> Linear:
        """The layer over panels that are widened."""
        return Linear(self.columns, self.activation, self.alpha, self.beta)

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        want(self, (x,), F32)
        if not x.rank or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), "x, w, scale?, shift?, residual?")
        layout = self.kind, self.block
        want_narrow(self, w, layout, panels(self.columns), x.shape[-1])
        result = x.with_shape((*x.shape[:-1], self.columns))
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        wide = widened(w, self.kind, self.block, x.shape[-1])
        return self.plain.reference(x, wide, *epilogue)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for kind in WIDTHS:
            sizes = ((1, 1, 1), (7, 3, 17), (33, 70, 16), (0, 3, 5), (5, 0, 3))
            for rows, k, n in (*sizes, (1, 300, 70), (2, 300, 70)):
                op = NarrowLinear(n, kind=kind)
                yield Sample(op, (cases.floats(rows, k), narrow_panels(k, n, kind, 32)))
            x, w = cases.floats(2, 7, 20), narrow_panels(20, 33, kind, 8)
            scale, shift = cases.positive(33), cases.floats(33)
            residual = cases.floats(2, 7, 33, seed=1)
            for name in NAMES if kind == HALF else ("none", "relu", "gelu"):
                op = NarrowLinear(33, name, *parameters(name), kind, 8)
                yield Sample(op, (x, w, scale, shift, residual))
            yield Sample(op, (cases.floats(20), w, None, shift, None))


class NarrowConv(OverWindows, name="narrow_conv"):
    """``x[N, H, W, C]`` by panels of few bits, then the epilogue; groups as `Conv`."""

    in_place = (4,)
    channels: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    dilations: tuple[int, ...] = (1, 1)
    groups: int = 1
    activation: str = "none"
    alpha: float = 0.0
    beta: float = 0.0
    kind: str = HALF
    block: int = 32

    @property
    def plain(self) -> Conv:
        """The convolution over panels that are widened."""
        return Conv(*(getattr(self, field.name) for field in Conv.fields))

    def infer(
        self, x: TensorType, w: TensorType, *epilogue: TensorType | None
    ) -> TensorType:
        want(self, (x,), F32)
        result = x.with_shape(self.window.shape(self, x, self.channels))
        whole = self.groups > 0 and self.channels % self.groups == 0
        if not whole or not may_equal(x.shape[3] % self.groups, 0) or len(epilogue) > 3:
            raise self.refuse((x, w, *epilogue), f"{self.groups} equal groups")
        reduced = math.prod(self.kernel) * floordiv(x.shape[3], self.groups)
        count = self.groups * panels(self.channels // self.groups)
        want_narrow(self, w, (self.kind, self.block), count, reduced)
        want_epilogue(self, result, self.activation, *epilogue)
        return result

    def reference(self, x: Array, w: Array, *epilogue: Array | None) -> Array:
        reduced = math.prod(self.kernel) * (x.shape[3] // self.groups)
        wide = widened(w, self.kind, self.block, reduced)
        return self.plain.reference(x, wide, *epilogue)

    def cost(
        self, inputs: tuple[TensorType | None, ...], outputs: tuple[TensorType, ...]
    ) -> Cost:
        channels = inputs[0].dims[-1] // self.groups if inputs[0] else 0
        moved = super().cost(inputs, outputs).bytes
        macs = math.prod(outputs[0].dims) * math.prod(self.kernel) * channels
        return Cost(macs, moved)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for kind in WIDTHS:
            for size, window in WINDOWS:
                yield _sample((*size, 3), NarrowConv(17, kind=kind, block=8, **window))
            pads: dict[str, Any] = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}
            pads["kind"] = kind
            yield _sample((2, 4, 5, 33), NarrowConv(33, (1, 1), kind=kind))
            yield _sample((1, 4, 4, 6), NarrowConv(34, groups=2, block=8, **pads))
            yield _sample((1, 9, 8, 40), NarrowConv(40, **pads))
            yield _sample((1, 5, 4, 300), NarrowConv(20, (1, 3), kind=kind))
            for name in NAMES if kind == HALF else ("clip", "silu"):
                op = NarrowConv(17, (2, 2), kind=kind)
                alpha, beta = parameters(name)
                ended = op.replace(activation=name, alpha=alpha, beta=beta)
                yield with_epilogue(_sample((1, 4, 5, 3), op), ended)


def _sample(size: tuple[int, ...], op: NarrowConv) -> Sample:
    logical = cases.floats(op.channels, size[3] // op.groups, *op.kernel, seed=1)
    packing = PackNarrow((2, 3, 1, 0), op.groups, op.kind, op.block)
    return Sample(op, (cases.floats(*size), packing.reference(logical)))
