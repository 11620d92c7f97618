"""Tensors of ONNX files: contradictions are refused, odd ways to write are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hostile_onnx import added, model_of, refuse
from onnx import TensorProto, helper, numpy_helper

from edgewise.convert import convert
from edgewise.runtime.session import Session

FLOAT, BOOL, STRING = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.STRING


def given_back(weight: TensorProto) -> Any:
    """What an initializer holds, by way of a run."""
    weight.name = "w"
    node = helper.make_node("Identity", ["w"], ["y"])
    with Session(convert(model_of([node], weight))) as session:
        return session.run({"x": np.zeros(2, "f4")})["y"]


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ([0, 1 << 62], "no memory holds"),
        ([1 << 31, 1 << 31, 1 << 31], "no memory holds"),
        ([1] * 65, "want at most 32"),
        ([-(1 << 63)], "none negative"),
        ([1 << 40], "holds 8 bytes"),
    ],
)
def test_sizes_are_held_against_the_data_first(dims: Any, reason: str) -> None:
    refuse(added(TensorProto(data_type=FLOAT, dims=dims, raw_data=bytes(8))), reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"data_type": FLOAT, "float_data": [1]}, "holds 4 bytes"),
        ({"data_type": FLOAT, "float_data": [1] * 9}, "holds 36 bytes"),
        ({"data_type": FLOAT, "int32_data": [1, 2]}, "holds 0 bytes"),
        ({"data_type": FLOAT, "float_data": [1, 2], "raw_data": b"12345678"}, "both"),
        ({"data_type": TensorProto.INT8, "int32_data": [1, 128]}, "-128 to 127"),
        ({"data_type": TensorProto.UINT8, "int32_data": [-1, 1]}, "0 to 255"),
        ({"data_type": TensorProto.FLOAT16, "int32_data": [1, 1 << 20]}, "0 to 65535"),
        ({"data_type": TensorProto.UINT32, "uint64_data": [1, 1 << 40]}, "u32"),
        ({"data_type": BOOL, "int32_data": [0, 2]}, "0 to 1"),
        ({"data_type": STRING, "string_data": [b"a"]}, "holds 1 texts"),
        ({"data_type": STRING, "string_data": [b"a", b"\xff"]}, "not UTF-8"),
        ({"data_type": TensorProto.COMPLEX64, "float_data": [1, 2]}, "holds 8 bytes"),
        ({"data_type": TensorProto.INT4, "int32_data": [1, 2]}, "holds 2 bytes"),
        ({"data_type": 9999, "raw_data": b"12345678"}, "element type 9999"),
        ({"data_type": FLOAT, "segment": TensorProto.Segment(begin=1)}, "segment"),
    ],
    ids=str,
)
def test_a_tensor_whose_parts_contradict_each_other_is_refused(
    fields: dict[str, Any], reason: str
) -> None:
    refuse(added(TensorProto(dims=[2], **fields)), reason)


@pytest.mark.parametrize(
    "array",
    [
        np.array([-8, 7, 0], "i1"),
        np.array([0, 65535], "u2"),
        np.array([1.5, -0.0, np.nan], "f2"),
        np.array([2**63, 1], "u8"),
        np.array([[True], [False]]),
        np.array([1 + 2j, -3j], "c8"),
        np.array(7, "i8"),
        np.zeros((0, 3), "f8"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_listed_numbers_are_read_as_they_were_written(array: Any) -> None:
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    listed = helper.make_tensor("w", code, array.shape, array.reshape(-1))
    assert not listed.raw_data
    got = given_back(listed)
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("raw", [True, False])
def test_packed_numbers_are_unpacked_as_onnx_does(name: str, raw: bool) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = np.array([0, 1, 1, 0, 1, 0, 1]).astype(dtype)
    code = helper.np_dtype_to_tensor_dtype(dtype)
    tensor = helper.make_tensor("w", code, [7], values, raw=raw)
    want = numpy_helper.to_array(tensor)
    np.testing.assert_array_equal(given_back(tensor), want)


def test_any_byte_but_zero_is_true() -> None:
    got = given_back(TensorProto(data_type=BOOL, dims=[3], raw_data=b"\x00\x01\x80"))
    assert got.view(np.uint8).tolist() == [0, 1, 1]
