"""The bits of elements as they lie: read as another type of the same width."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewise.errors import DTypeError
from edgewise.ir.op import Array, Op, Sample
from edgewise.ops import cases
from edgewise.types import DType, TensorType


class BitCast(Op, name="bit_cast"):
    """The same bits as another type, ``to``, of the same width."""

    narrow = True
    to: str

    def infer(self, x: TensorType) -> TensorType:
        try:
            dtype = DType(self.to)
        except ValueError as error:
            raise DTypeError(f"bit_cast: {self.to!r} names no element type") from error
        if x.dtype.width != dtype.width or not dtype.bits:
            raise DTypeError(f"bit_cast: got {x} to {self.to}; want as many bits")
        return x.with_dtype(dtype)

    def reference(self, x: Array) -> Array:
        given, wanted = DType.of(x.dtype), DType(self.to)
        if given.width < given.bits:
            return _narrow(x.view(np.uint8), wanted)
        # A truth value is a whole byte, of which anything but 0 is true.
        bits = x.view(np.uint8) != 0 if wanted is DType.BOOL else x.view(wanted.numpy)
        return bits.copy()

    @staticmethod
    def samples() -> Iterator[Sample]:
        for source, target in (
            ("float32", "i32"),
            ("float32", "u32"),
            ("float64", "i64"),
            ("float16", "u16"),
        ):
            for x in (*list(cases.arrays(source))[:6], cases.special(source)):
                yield Sample(BitCast(target), (x,))
        for source, target in (("int32", "f32"), ("uint8", "i8"), ("int64", "u64")):
            yield Sample(BitCast(target), (cases.extremes(source),))
        yield Sample(BitCast("u8"), (cases.bools(7),))


def _narrow(bits: Array, wanted: DType) -> Array:
    """The lower bits of every byte, their sign carried into the upper ones."""
    width = wanted.width
    low = bits & (2**width - 1)
    if wanted.is_integer:
        signed = wanted in {DType.I4, DType.I2}
        wrapped = low.astype(np.int8) - 2**width * (signed & (low >= 2 ** (width - 1)))
        return np.asarray(wrapped).astype(wanted.numpy)
    return np.asarray(low.view(wanted.numpy))
