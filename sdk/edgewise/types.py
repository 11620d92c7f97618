"""What a tensor is: element type, shape, quantisation."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping

import numpy as np

from edgewise.dims import Dim, Shape, bind, product
from edgewise.errors import DTypeError


class DType(enum.Enum):
    """Element type of a tensor; the value is its short name and never changes."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0FNU = "f8e8m0fnu"
    F4E2M1FN = "f4e2m1fn"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    I4 = "i4"
    I2 = "i2"
    U64 = "u64"
    U32 = "u32"
    U16 = "u16"
    U8 = "u8"
    U4 = "u4"
    U2 = "u2"
    BOOL = "bool"
    STRING = "string"
    C64 = "c64"
    C128 = "c128"

    @property
    def bits(self) -> int:
        """Bits an element takes in memory; 0 for strings, which lie elsewhere."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        """Whether it holds fractions."""
        return self.value.startswith(("f", "bf"))

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned whole number (bool is not)."""
        return self.value[0] in "iu"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type; from ``ml_dtypes`` where numpy has none."""
        name = _NUMPY.get(self)
        return np.dtype(name) if name else _ml_dtype(self)

    @classmethod
    def of(cls, dtype: np.dtype[np.generic] | type) -> DType:
        """The element type of a numpy dtype."""
        given = np.dtype(dtype)
        # The name of a text type ends in its length.
        found = DType.STRING if given.kind == "U" else _FROM_NUMPY.get(given.name)
        if found is None:
            raise DTypeError(f"numpy type {given} has no counterpart")
        return found


_NUMPY = {
    DType.F64: "float64",
    DType.F32: "float32",
    DType.F16: "float16",
    DType.I64: "int64",
    DType.I32: "int32",
    DType.I16: "int16",
    DType.I8: "int8",
    DType.U64: "uint64",
    DType.U32: "uint32",
    DType.U16: "uint16",
    DType.U8: "uint8",
    DType.BOOL: "bool",
    DType.STRING: "object",
    DType.C64: "complex64",
    DType.C128: "complex128",
}
_ML = {
    DType.BF16: "bfloat16",
    DType.F8E4M3FN: "float8_e4m3fn",
    DType.F8E4M3FNUZ: "float8_e4m3fnuz",
    DType.F8E5M2: "float8_e5m2",
    DType.F8E5M2FNUZ: "float8_e5m2fnuz",
    DType.F8E8M0FNU: "float8_e8m0fnu",
    DType.F4E2M1FN: "float4_e2m1fn",
    DType.I4: "int4",
    DType.I2: "int2",
    DType.U4: "uint4",
    DType.U2: "uint2",
}
_FROM_NUMPY = {name: dtype for dtype, name in (_NUMPY | _ML).items()}
# A packed type (4 or 2 bits in a file) takes a byte an element in memory.
_BITS = {
    dtype: 8 * np.dtype(name).itemsize
    for dtype, name in _NUMPY.items()
    if dtype is not DType.STRING
} | {dtype: 16 if dtype is DType.BF16 else 8 for dtype in _ML}
_BITS[DType.STRING] = 0


def _ml_dtype(dtype: DType) -> np.dtype[np.generic]:
    import ml_dtypes  # noqa: PLC0415 - only models with such types pay for it

    found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _ML[dtype]))
    return found


class QuantParams:
    """How stored integers stand for real numbers: ``real = scale * (q - zero_point)``.

    Attributes:
        scales: One per tensor, or one per slice along ``axis``.
        zero_points: As many as scales.
        axis: The axis the scales run along; -1 for one scale per tensor.
        block: Elements along ``axis`` that share a scale; 0: one scale a slice.
    """

    __slots__ = ("axis", "block", "scales", "zero_points")

    def __init__(
        self,
        scales: tuple[float, ...],
        zero_points: tuple[int, ...],
        axis: int = -1,
        block: int = 0,
    ) -> None:
        if not scales or len(scales) != len(zero_points):
            raise DTypeError(
                f"{len(scales)} scales and {len(zero_points)} zero points do not pair"
            )
        self.scales, self.zero_points = scales, zero_points
        self.axis, self.block = axis, block

    def _key(self) -> tuple[object, ...]:
        return self.scales, self.zero_points, self.axis, self.block

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantParams) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class TensorType:
    """Element type and shape of a value; immutable, compared by value."""

    __slots__ = ("dtype", "quant", "shape")

    def __init__(
        self, dtype: DType, shape: Shape, quant: QuantParams | None = None
    ) -> None:
        self.dtype, self.shape, self.quant = dtype, shape, quant

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return all(isinstance(dim, int) for dim in self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape of a static type."""
        if not self.is_static:
            raise DTypeError(f"{self} has sizes that only a run knows")
        return self.shape  # type: ignore[return-value]  # checked above

    @property
    def elements(self) -> Dim:
        """Number of elements."""
        return product(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that a static tensor takes in memory."""
        return math.prod(self.dims) * self.dtype.bits // 8

    def with_shape(self, shape: Shape) -> TensorType:
        """The same elements in another shape."""
        return TensorType(self.dtype, shape, self.quant)

    def with_dtype(self, dtype: DType) -> TensorType:
        """The same shape of other elements."""
        return TensorType(dtype, self.shape)

    def bind(self, values: Mapping[str, Dim]) -> TensorType:
        """With the symbols in ``values`` replaced."""
        if self.is_static:
            return self
        shape = tuple(bind(dim, values) for dim in self.shape)
        return TensorType(self.dtype, shape, self.quant)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorType)
            and self.dtype is other.dtype
            and self.shape == other.shape
            and self.quant == other.quant
        )

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"{self.dtype.value}[{', '.join(map(str, self.shape))}]"
