"""Element types of tensors, and their counterparts in numpy."""

from __future__ import annotations

import enum

import numpy as np

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
    def width(self) -> int:
        """Bits that tell its value; fewer than ``bits`` where a file packs several."""
        return _PACKED.get(self, self.bits)

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
_PACKED = {DType.I4: 4, DType.U4: 4, DType.F4E2M1FN: 4, DType.I2: 2, DType.U2: 2}


def _ml_dtype(dtype: DType) -> np.dtype[np.generic]:
    import ml_dtypes  # noqa: PLC0415 - only models with such types pay for it

    found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _ML[dtype]))
    return found
