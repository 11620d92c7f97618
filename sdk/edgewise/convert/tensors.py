"""Arrays of ONNX tensors; nothing that a tensor says of itself is believed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import SparseTensorProto, TensorProto, numpy_helper

from edgewise.convert.source import Parsed
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
# Bits of an element in a file, where they are not those in memory.
_PACKED = {DType.I4: 4, DType.U4: 4, DType.F4E2M1FN: 4, DType.I2: 2, DType.U2: 2}


def element_type(parsed: Parsed, code: int, where: str) -> DType:
    """The type that ``code`` stands for in ONNX."""
    found = DTYPES.get(code)
    if found is None:
        raise parsed.error(f"{where} has element type {code}, which ONNX does not have")
    return found


def tensor_array(parsed: Parsed, tensor: TensorProto, where: str) -> Array:
    """The array a tensor holds, in the file or beside it."""
    dtype = element_type(parsed, tensor.data_type, where)
    dims = tuple(tensor.dims)
    if any(dim < 0 for dim in dims):
        raise parsed.error(f"{where} has a negative size: {list(dims)}")
    if tensor.data_location == TensorProto.EXTERNAL:
        return _from_bytes(parsed, tensor, dtype, _external(parsed, tensor, where))
    if tensor.HasField("raw_data"):
        return _from_bytes(parsed, tensor, dtype, tensor.raw_data)
    try:
        array: Array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise parsed.error(
            f"{where} has sizes {list(dims)} that its data does not fill"
        ) from error
    if dtype is DType.STRING:
        return _texts(array)
    return array.reshape(dims)


def _texts(array: Array) -> Array:
    decoded = [x.decode() if isinstance(x, bytes) else str(x) for x in array.flat]
    texts = np.empty(len(decoded), object)
    texts[:] = decoded
    return texts.reshape(array.shape)


def _from_bytes(
    parsed: Parsed, tensor: TensorProto, dtype: DType, data: bytes | Array
) -> Array:
    count = math.prod(tensor.dims)
    bits = _PACKED.get(dtype, dtype.bits)
    if not bits or len(data) != -(-count * bits // 8):
        raise parsed.error(
            f"tensor {tensor.name!r} holds {len(data)} bytes; {list(tensor.dims)} of"
            f" {dtype.value} takes {-(-count * bits // 8)}"
        )
    if dtype in _PACKED:
        inside = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
        inside.raw_data = bytes(data)
        array: Array = numpy_helper.to_array(inside)
        return array
    # Files are little-endian, and so is every processor that edgewise supports.
    return np.frombuffer(data, dtype.numpy).reshape(tensor.dims)


def _external(parsed: Parsed, tensor: TensorProto, where: str) -> Array:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(parsed, entries.get("location", ""), where)
    size = path.stat().st_size
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size - offset))
    except ValueError as error:
        raise parsed.error(f"{where} has no numbers for its external range") from error
    # Python's integers do not wrap, so the sum may be compared as it stands.
    if offset < 0 or length < 0 or offset + length > size:
        raise parsed.error(
            f"{where} wants bytes {offset} to {offset + length} of {path.name},"
            f" which has {size}"
        )
    if length == 0:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r", offset, (length,))


def _inside(parsed: Parsed, location: str, where: str) -> Path:
    """The file called ``location``, which must lie in the model's own folder."""
    if parsed.folder is None:
        raise parsed.error(
            f"{where} lies in another file ({location!r}): convert from a path"
        )
    folder = parsed.folder.resolve()
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder):
        raise parsed.error(
            f"{where} lies outside the model's folder ({location!r}); want it beside"
            " the model"
        )
    if not path.is_file():
        raise parsed.error(f"{where} lies in {location!r}, which is not there")
    return path


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """The plain value of an attribute; texts decoded, lists as tuples."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (str, int, float)) or not hasattr(value, "__len__"):
        return value
    if hasattr(value, "DESCRIPTOR"):
        return value
    return tuple(
        v.decode(errors="replace") if isinstance(v, bytes) else v for v in value
    )


def sparse_array(parsed: Parsed, sparse: SparseTensorProto, where: str) -> Array:
    """The dense array of a sparse tensor, whose indices are checked first."""
    dims = tuple(sparse.dims)
    count = math.prod(dims)
    if any(dim < 0 for dim in dims) or count > MAX_DENSE:
        raise parsed.error(
            f"{where} is sparse with the sizes {list(dims)}; want 0 or more, and at"
            f" most {MAX_DENSE} elements in all"
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
