"""Variables in fewer bytes than their elements take, without changing one.

Coded are the elements in the order of the logical tensor, all little-endian:

sparse: a bit for each, whether it is not zero, the first in the low bits; then those
codebook: u16 count of values; the values; for each element the number of its value,
    in 1, 2, 4 or 8 bits, the first in the low bits
binary: the size of every output channel's elements; a bit for each, whether negative
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from edgewise.format.arrays import Buffer, spread, squeeze
from edgewise.format.tables import DamageError
from edgewise.ir.module import Coding, VariableInfo
from edgewise.ir.op import Array, Op
from edgewise.ops.pack import PackPanels, PackQuads, PackTaps, output_axis
from edgewise.types import DType, TensorType

MOST_GROWTH = 64  # of stored bytes over coded ones: what a hostile file can claim
MOST_VALUES = 256
_COUNT = struct.Struct("<H")
_DTYPES = frozenset(
    {DType.F64, DType.F32, DType.F16}
    | {DType.I64, DType.I32, DType.I16, DType.I8}
    | {DType.U64, DType.U32, DType.U16, DType.U8}
)
_PACKINGS = (PackPanels, PackQuads, PackTaps)


def encode(info: VariableInfo) -> bytes | None:
    """The coded bytes; None where they would not be fewer, or not the same numbers."""
    stored, packing = info.initial, info.packing
    if stored is None or not _can_be_coded(info.coding, info.logical, packing):
        return None
    stored = np.ascontiguousarray(stored)
    logical = stored
    if isinstance(packing, _PACKINGS):
        logical = packing.unpack(stored, info.logical)
    data = _encoded(info.coding, np.ascontiguousarray(logical), packing)
    if not data or not len(data) < stored.nbytes <= MOST_GROWTH * len(data):
        return None
    again = decode(data, info.coding, info.type, info.logical, packing)
    return data if again.tobytes() == stored.tobytes() else None


def decode(
    data: Buffer, coding: Coding, type_: TensorType, logical: TensorType, packing: Any
) -> Array:
    """The stored array in coded bytes.

    Raises:
        DamageError: They are not those of a variable of that type.
    """
    if not _can_be_coded(coding, logical, packing):
        raise DamageError(f"{logical} cannot be {coding.value}")
    size = math.prod(type_.dims) * type_.dtype.bits // 8
    if size > MOST_GROWTH * len(data):
        raise DamageError(f"{type_} cannot come of {len(data)} bytes")
    count, numpy = math.prod(logical.dims), np.dtype(logical.dtype.numpy)
    if coding is Coding.SPARSE:
        flat = _sparse(data, count, numpy)
    elif coding is Coding.CODEBOOK:
        flat = _codebook(data, count, numpy)
    else:
        flat = _binary(data, logical, output_axis(packing), numpy)
    array = flat.reshape(logical.dims)
    if packing is not None:
        array = np.ascontiguousarray(packing.reference(array))
    array.flags.writeable = False
    return array


def _can_be_coded(coding: Coding, logical: TensorType, packing: Op | None) -> bool:
    dtype = logical.dtype
    signed = coding is not Coding.BINARY or (dtype.is_float and logical.rank > 0)
    known = packing is None or isinstance(packing, _PACKINGS)
    return coding is not Coding.PLAIN and dtype in _DTYPES and signed and known


def _encoded(coding: Coding, logical: Array, packing: Op | None) -> bytes:
    if coding is Coding.BINARY:
        sizes = np.abs(np.moveaxis(logical, output_axis(packing), 0))
        if not logical.size:
            return b""
        first = sizes.reshape(len(sizes), -1)[:, 0]
        return bytes(first.tobytes()) + _bits(np.signbit(logical))
    flat = logical.reshape(-1)
    words = flat.view(f"u{flat.itemsize}")  # by bits: -0.0 is not 0.0
    if coding is Coding.SPARSE:
        there = words != 0
        return _bits(there) + bytes(flat[there].tobytes())
    values, numbers = np.unique(words, return_inverse=True)
    if not 0 < len(values) <= MOST_VALUES:
        return b""
    packed = squeeze(numbers.astype(np.uint8), _width(len(values)))
    return b"".join((_COUNT.pack(len(values)), values.tobytes(), packed.tobytes()))


def _sparse(data: Buffer, count: int, dtype: np.dtype[Any]) -> Array:
    there, rest = _flags(data, count)
    if int(there.sum()) * dtype.itemsize != len(rest):
        raise DamageError(f"{len(rest)} bytes are not the elements that are not zero")
    flat = np.zeros(count, dtype)
    flat[there] = np.frombuffer(rest, dtype)
    return flat


def _codebook(data: Buffer, count: int, dtype: np.dtype[Any]) -> Array:
    if len(data) < _COUNT.size:
        raise DamageError("a codebook is cut short")
    (size,) = _COUNT.unpack_from(data)
    if not 0 < size <= MOST_VALUES:
        raise DamageError(f"a codebook has {size} values; want 1 to {MOST_VALUES}")
    start, width = _COUNT.size + size * dtype.itemsize, _width(size)
    if len(data) != start + -(-count * width // 8):
        raise DamageError(f"{len(data)} bytes are no codebook of {size} values")
    values = np.frombuffer(data[_COUNT.size : start], dtype)
    numbers = spread(np.frombuffer(data[start:], np.uint8), width)[:count]
    if numbers.max(initial=0) >= size:
        raise DamageError(f"a codebook of {size} values has no value {numbers.max()}")
    return np.asarray(values[numbers])


def _binary(
    data: Buffer, logical: TensorType, axis: int, dtype: np.dtype[Any]
) -> Array:
    channels = logical.dims[axis]
    start = channels * dtype.itemsize
    negative, rest = _flags(data[start:], math.prod(logical.dims))
    if len(data) < start or len(rest):
        raise DamageError(f"{len(data)} bytes are not the signs of {logical}")
    sizes = np.frombuffer(data[:start], dtype)
    lined = sizes.reshape([-1 if j == axis else 1 for j in range(logical.rank)])
    return np.where(negative.reshape(logical.dims), -lined, lined)


def _bits(flags: Array) -> bytes:
    return bytes(np.packbits(flags.reshape(-1), bitorder="little"))


def _flags(data: Buffer, count: int) -> tuple[Array, Buffer]:
    """A flag for each of ``count`` elements, and what follows them."""
    size = -(-count // 8)
    if len(data) < size:
        raise DamageError(f"{len(data)} bytes are not a bit for each of {count}")
    octets = np.frombuffer(data[:size], np.uint8)
    flags = np.unpackbits(octets, bitorder="little", count=count).view(np.bool_)
    return flags, data[size:]


def _width(count: int) -> int:
    """Bits of a number below ``count``: whole numbers of them fill bytes."""
    return next(bits for bits in (1, 2, 4, 8) if count <= 2**bits)
