"""Arrays to the bytes of a file and back; views wherever memory and file agree."""

from __future__ import annotations

import math
import struct
from typing import TypeAlias

import numpy as np

from edgewise.errors import InternalError
from edgewise.format.tables import DamageError
from edgewise.ir.op import Array
from edgewise.types import DType, TensorType

Buffer: TypeAlias = "bytes | memoryview"

# Elements smaller than a byte share one in a file; in memory each takes its own.
_PACKED_BITS = {
    DType.I4: 4,
    DType.U4: 4,
    DType.F4E2M1FN: 4,
    DType.I2: 2,
    DType.U2: 2,
}
_LENGTH = struct.Struct("<I")


def encode(array: Array, type_: TensorType) -> Buffer:
    """The bytes of ``array`` as a file holds them; no copy where memory agrees."""
    if array.shape != type_.dims or DType.of(array.dtype) is not type_.dtype:
        raise InternalError(f"an array {array.dtype}{list(array.shape)} is no {type_}")
    if type_.dtype is DType.STRING:
        return _encode_texts(array)
    flat = np.ascontiguousarray(array, dtype=type_.dtype.numpy).reshape(-1)
    octets = flat.view(np.uint8)
    bits = _PACKED_BITS.get(type_.dtype)
    return octets.data if bits is None else squeeze(octets, bits).tobytes()


def decode(data: Buffer, type_: TensorType) -> Array:
    """The read-only array in ``data``; a view of it wherever memory and file agree.

    Raises:
        DamageError: The bytes are not those of a tensor of that type.
    """
    dtype, dims = type_.dtype, type_.dims
    if dtype is DType.STRING:
        return _decode_texts(bytes(data), dims)
    bits = _PACKED_BITS.get(dtype, dtype.bits)
    wanted = (math.prod(dims) * bits + 7) // 8
    if len(data) != wanted:
        raise DamageError(f"{type_} has {len(data)} bytes; want {wanted}")
    try:
        memory = dtype.numpy
    except ImportError as error:
        name = error.name
        raise DamageError(f"{type_} needs {name}: pip install {name}") from error
    if bits < 8:
        return _decode_packed(data, dtype, dims)
    array: Array = np.ndarray(dims, memory, data)
    if dtype is DType.BOOL and array.view(np.uint8).max(initial=0) > 1:
        raise DamageError("a truth value is neither 0 nor 1")
    return array


def _decode_packed(data: Buffer, dtype: DType, dims: tuple[int, ...]) -> Array:
    bits = _PACKED_BITS[dtype]
    lanes = spread(np.frombuffer(data, np.uint8), bits)[: math.prod(dims)]
    array = lanes.view(dtype.numpy).reshape(dims)
    array.flags.writeable = False
    return array


def squeeze(octets: Array, bits: int) -> Array:
    """Bytes that hold the low ``bits`` of each element, the first in the low bits."""
    share = 8 // bits
    padded = np.zeros(-(-octets.size // share) * share, np.uint8)
    padded[: octets.size] = octets & (2**bits - 1)
    lanes = padded.reshape(-1, share) << np.arange(0, 8, bits, dtype=np.uint8)
    packed: Array = np.bitwise_or.reduce(lanes, axis=1).astype(np.uint8)
    return packed


def spread(octets: Array, bits: int) -> Array:
    """The elements of ``bits`` in bytes, those that fill up the last included."""
    lanes = octets[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)
    spread: Array = (lanes & (2**bits - 1)).reshape(-1)
    return spread


def _encode_texts(array: Array) -> bytes:
    parts = []
    for item in array.reshape(-1).tolist():
        if not isinstance(item, str):
            raise InternalError(f"a tensor of strings holds {item!r}")
        text = item.encode()
        parts += [_LENGTH.pack(len(text)), text]
    return b"".join(parts)


def _decode_texts(data: bytes, dims: tuple[int, ...]) -> Array:
    count, at = math.prod(dims), 0
    if count * _LENGTH.size > len(data):
        raise DamageError(f"{len(data)} bytes do not hold {count} strings")
    array = np.empty(count, object)
    for index in range(count):
        if at + _LENGTH.size > len(data):
            raise DamageError("a tensor of strings is cut short")
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(data, at)[0]
        try:
            array[index] = data[start:at].decode()
        except UnicodeDecodeError:
            raise DamageError("a string is not UTF-8") from None
    if at != len(data):
        raise DamageError("a tensor of strings has another length than its strings")
    array = array.reshape(dims)
    array.flags.writeable = False
    return array
