"""Arrays of ONNX tensors; nothing that a tensor says of itself is believed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import SparseTensorProto, TensorProto

from edgewise.convert.external import external_bytes
from edgewise.convert.signature import LISTS, field_of
from edgewise.convert.source import Parsed
from edgewise.format.values import MAX_ELEMENTS, MAX_RANK
from edgewise.ir.op import Array
from edgewise.types import DType

DTYPES: dict[int, DType] = {
    TensorProto.FLOAT: DType.F32,
    TensorProto.DOUBLE: DType.F64,
    TensorProto.FLOAT16: DType.F16,
    TensorProto.BFLOAT16: DType.BF16,
    TensorProto.FLOAT8E4M3FN: DType.F8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ: DType.F8E4M3FNUZ,
    TensorProto.FLOAT8E5M2: DType.F8E5M2,
    TensorProto.FLOAT8E5M2FNUZ: DType.F8E5M2FNUZ,
    TensorProto.FLOAT8E8M0: DType.F8E8M0FNU,
    TensorProto.FLOAT4E2M1: DType.F4E2M1FN,
    TensorProto.INT64: DType.I64,
    TensorProto.INT32: DType.I32,
    TensorProto.INT16: DType.I16,
    TensorProto.INT8: DType.I8,
    TensorProto.INT4: DType.I4,
    TensorProto.INT2: DType.I2,
    TensorProto.UINT64: DType.U64,
    TensorProto.UINT32: DType.U32,
    TensorProto.UINT16: DType.U16,
    TensorProto.UINT8: DType.U8,
    TensorProto.UINT4: DType.U4,
    TensorProto.UINT2: DType.U2,
    TensorProto.BOOL: DType.BOOL,
    TensorProto.STRING: DType.STRING,
    TensorProto.COMPLEX64: DType.C64,
    TensorProto.COMPLEX128: DType.C128,
}
MAX_DENSE = 1 << 26  # elements that a sparse tensor may turn into
# Where elements are listed; all others are in int32_data.
_LISTS = {
    DType.F32: "float_data",
    DType.C64: "float_data",
    DType.F64: "double_data",
    DType.C128: "double_data",
    DType.I64: "int64_data",
    DType.U64: "uint64_data",
    DType.U32: "uint64_data",
}
_NUMBERS = {
    "float_data": np.float32,
    "double_data": np.float64,
    "int64_data": np.int64,
    "uint64_data": np.uint64,
    "int32_data": np.int32,
}


def element_type(parsed: Parsed, code: int, where: str) -> DType:
    """The type that ``code`` stands for in ONNX."""
    found = DTYPES.get(code)
    if found is None:
        raise parsed.error(f"{where} has element type {code}, which ONNX does not have")
    return found


def tensor_array(parsed: Parsed, tensor: TensorProto, where: str) -> Array:
    """The array a tensor holds, in the file or beside it."""
    dtype = element_type(parsed, tensor.data_type, where)
    dims = _dims(parsed, tensor.dims, where)
    if tensor.HasField("segment"):
        raise parsed.error(f"{where} is a segment of a tensor; want it whole")
    if dtype is DType.STRING:
        return _texts(parsed, tensor, dims, where)
    if tensor.data_location == TensorProto.EXTERNAL:
        data = external_bytes(parsed, tensor, where)
    elif tensor.raw_data:
        if any(len(getattr(tensor, field)) for field in _NUMBERS):
            raise parsed.error(f"{where} holds both raw data and a list of numbers")
        data = np.frombuffer(tensor.raw_data, np.uint8)
    else:
        data = _listed(parsed, tensor, dtype, where)
    count = math.prod(dims)
    size = -(-count * dtype.width // 8)
    if len(data) != size:
        raise parsed.error(
            f"{where} holds {len(data)} bytes; {list(dims)} of {dtype.value} takes"
            f" {size}"
        )
    if dtype is DType.BOOL:
        truth: Array = data != 0
        return truth.reshape(dims)
    if dtype.width < dtype.bits:
        return _unpacked(data, dtype, count).reshape(dims)
    # Files are little-endian, and so is every processor that edgewise supports.
    return np.frombuffer(data, dtype.numpy).reshape(dims)


def _dims(parsed: Parsed, given: Iterable[int], where: str) -> tuple[int, ...]:
    """Sizes that an array may have; products are taken where they cannot wrap."""
    dims = tuple(given)
    if len(dims) > MAX_RANK or any(dim < 0 for dim in dims):
        raise parsed.error(
            f"{where} has the sizes {list(dims)[: MAX_RANK + 1]}; want at most"
            f" {MAX_RANK}, none negative"
        )
    # Axes beside an empty one count too: numpy wants their product to fit.
    if math.prod(dim or 1 for dim in dims) > MAX_ELEMENTS:
        raise parsed.error(f"{where} has the sizes {list(dims)}: no memory holds those")
    return dims


def _listed(parsed: Parsed, tensor: TensorProto, dtype: DType, where: str) -> Array:
    """The bytes of a tensor whose elements are listed as numbers."""
    field = _LISTS.get(dtype, "int32_data")
    numbers = np.array(getattr(tensor, field), _NUMBERS[field])
    if field == "int32_data" and dtype is not DType.I32:
        low, high = _written(dtype)
        if numbers.size and not low <= numbers.min() <= numbers.max() <= high:
            raise parsed.error(
                f"{where} lists numbers from {numbers.min()} to {numbers.max()}; those"
                f" of {dtype.value} are {low} to {high}"
            )
        unsigned = np.uint16 if dtype.bits == 16 else np.uint8
        numbers = numbers.astype(unsigned)
    elif dtype is DType.U32:
        if (numbers >> np.uint64(32)).any():
            raise parsed.error(
                f"{where} lists numbers that {dtype.value} does not have"
            )
        numbers = numbers.astype(np.uint32)
    return numbers.view(np.uint8)


def _written(dtype: DType) -> tuple[int, int]:
    """The numbers that stand for elements; for fractions and packed ones, bits."""
    if dtype in (DType.I8, DType.I16):
        return -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1
    return 0, 1 if dtype is DType.BOOL else (1 << dtype.bits) - 1


def _unpacked(data: Array, dtype: DType, count: int) -> Array:
    """One element a byte, from several; the first lies in the lowest bits."""
    shifts = np.arange(0, 8, dtype.width, dtype=np.uint8)
    mask = np.uint8((1 << dtype.width) - 1)
    found = ((data[:, None] >> shifts) & mask).reshape(-1)[:count]
    if dtype in (DType.I4, DType.I2):  # the sign fills the byte
        top = 8 - dtype.width
        found = ((found << np.uint8(top)).view(np.int8) >> np.int8(top)).view(np.uint8)
    return found.view(dtype.numpy)


def _texts(
    parsed: Parsed, tensor: TensorProto, dims: tuple[int, ...], where: str
) -> Array:
    count = math.prod(dims)
    if len(tensor.string_data) != count:
        raise parsed.error(
            f"{where} holds {len(tensor.string_data)} texts; {list(dims)} takes {count}"
        )
    texts = np.empty(count, object)
    try:
        texts[:] = [text.decode() for text in tensor.string_data]
    except UnicodeDecodeError as error:
        raise parsed.error(f"{where} holds a text that is not UTF-8") from error
    return texts.reshape(dims)


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """The plain value of an attribute; texts decoded, lists as tuples."""
    field = field_of(attribute)
    value = getattr(attribute, field)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if field not in LISTS:
        return value
    return tuple(
        v.decode(errors="replace") if isinstance(v, bytes) else v for v in value
    )


def sparse_array(parsed: Parsed, sparse: SparseTensorProto, where: str) -> Array:
    """The dense array of a sparse tensor, whose indices are checked first."""
    dims = _dims(parsed, sparse.dims, where)
    count = math.prod(dims)
    if count > MAX_DENSE:
        raise parsed.error(
            f"{where} is sparse with the sizes {list(dims)}; want at most {MAX_DENSE}"
            " elements in all"
        )
    values = tensor_array(parsed, sparse.values, where)
    indices = tensor_array(parsed, sparse.indices, f"the indices of {where}")
    if values.ndim != 1 or indices.dtype != np.int64:
        raise parsed.error(f"{where} holds no vector of values, or no i64 indices")
    if indices.ndim == 2 and indices.shape == (len(values), len(dims)):
        sizes = np.asarray(dims, np.int64)
        inside = ((indices >= 0) & (indices < sizes)).all()
        places = tuple(indices.T)
    elif indices.shape == values.shape:
        inside = ((indices >= 0) & (indices < count)).all()
        places = np.unravel_index(indices, dims) if inside and count else ()
    else:
        raise parsed.error(
            f"{where} has indices of shape {list(indices.shape)} for {len(values)}"
            " values"
        )
    if not inside:
        raise parsed.error(f"{where} has indices beyond its sizes {list(dims)}")
    dense: Array = np.zeros(dims, values.dtype)
    if len(values):
        dense[places] = values
    return dense
