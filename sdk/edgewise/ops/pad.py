"""Padding and cropping along every axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.dims import Dim
from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.ops.checks import STRINGS, integers
from edgewise.types import DType, TensorType

MODES = ("constant", "reflect", "edge", "wrap")


def _cropped(pad: Dim) -> int:
    return min(pad, 0) if isinstance(pad, int) else 0


def _holds(dtype: DType, value: float) -> bool:
    signed = not dtype.value.startswith("u")
    bits = int(dtype.value.lstrip("ui"))
    return -(2.0 ** (bits - 1)) * signed <= value < 2.0 ** (bits - signed)


class Pad(Op, name="pad"):
    """Elements added at the ends of axes; a negative count crops.

    ``pads`` are all the begins, then all the ends.  Added elements are ``value``
    (mode constant), the mirror image without its edge (reflect), the last element
    (edge), or those of the other end (wrap), of what cropping leaves.
    """

    pads: tuple[Dim, ...]
    mode: str = "constant"
    value: float = 0.0

    def infer(self, x: TensorType) -> TensorType:
        if len(self.pads) != 2 * x.rank or self.mode not in MODES:
            raise self.refuse((x,), f"two pads for every axis and one of {MODES}")
        if x.dtype in STRINGS and self.mode == "constant":
            raise DTypeError(f"pad: got {x}; want numbers where a number is added")
        if x.dtype.is_integer and not _holds(x.dtype, self.value):
            raise DTypeError(f"pad: got {x}; want what {self.value} can be added to")
        ends = tuple(zip(self.pads[: x.rank], self.pads[x.rank :], strict=True))
        for dim, (begin, end) in zip(x.shape, ends, strict=True):
            kept = dim + _cropped(begin) + _cropped(end)
            grown = any(isinstance(pad, int) and pad > 0 for pad in (begin, end))
            least = int(grown and self.mode != "constant")
            if isinstance(kept, int) and kept < least:
                raise self.refuse((x,), f"elements left by the pads {list(self.pads)}")
        shape = zip(x.shape, ends, strict=True)
        return x.with_shape(tuple(dim + begin + end for dim, (begin, end) in shape))

    def reference(self, x: Array) -> Array:
        pads = integers(self, self.pads)
        for axis in range(x.ndim):
            begin, end = pads[axis], pads[axis + x.ndim]
            kept = np.arange(max(-begin, 0), x.shape[axis] - max(-end, 0))
            x = np.take(x, kept, axis=axis)
            x = self._grown(x, axis, max(begin, 0), max(end, 0))
        return x.copy()

    def _grown(self, x: Array, axis: int, begin: int, end: int) -> Array:
        size = x.shape[axis]
        index = np.arange(-begin, size + end)
        if self.mode == "constant":
            width = [(0, 0)] * x.ndim
            width[axis] = (begin, end)
            return np.pad(x, width, constant_values=x.dtype.type(self.value))
        if self.mode == "wrap":
            index = index % max(size, 1)
        elif self.mode == "reflect":
            period = max(2 * (size - 1), 1)
            index = index % period
            index = np.minimum(index, period - index) if size > 1 else 0 * index
        return np.take(x, np.clip(index, 0, max(size - 1, 0)), axis=axis)

    @staticmethod
    def samples() -> Iterator[Sample]:
        for mode in MODES:
            for shape, pads in (
                ((7,), (2, 3)),
                ((3, 5), (0, 2, 1, 0)),
                ((5, 4), (-1, 2, -2, -1)),
                ((2, 4, 3, 2), (0, 1, 2, 0, 0, 2, 1, 0)),
                ((1, 3), (0, 1, 0, 1)),
            ):
                yield Sample(Pad(pads, mode), (cases.floats(*shape),))
        yield Sample(Pad((1, 1), value=-np.inf), (cases.floats(3),))
        yield Sample(Pad((4, 4), "wrap"), (cases.floats(3),))
        yield Sample(Pad((2, 1), value=1.5), (cases.floats(0),))
        yield Sample(Pad((1, 2), value=3.0), (cases.whole(3),))
        yield Sample(Pad((1, 2), value=1.0), (cases.bools(3),))
        yield Sample(Pad((0, 0)), (cases.floats(5),))
