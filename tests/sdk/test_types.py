"""Element types, quantisation and tensor types."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.dims import symbol
from edgewise.errors import DTypeError
from edgewise.types import DType, QuantParams, TensorType

N = symbol("N")


@pytest.mark.parametrize("dtype", list(DType))
def test_every_element_type_has_one_numpy_type_and_its_size(dtype: DType) -> None:
    numpy_type = dtype.numpy
    if dtype is DType.STRING:
        assert dtype.bits == 0
        return
    assert dtype.bits == 8 * numpy_type.itemsize
    assert DType.of(numpy_type) is dtype


def test_kinds_of_element_types() -> None:
    assert {d.value for d in DType if d.is_integer} == {
        "i64", "i32", "i16", "i8", "i4", "i2", "u64", "u32", "u16", "u8", "u4", "u2",
    }  # fmt: skip
    assert DType.BF16.is_float
    assert DType.F8E5M2.is_float
    assert not DType.BOOL.is_integer
    assert not DType.C64.is_float


def test_texts_are_strings_and_dates_are_nothing() -> None:
    assert DType.of(np.dtype("U5")) is DType.STRING
    with pytest.raises(DTypeError, match="datetime64"):
        DType.of(np.dtype("datetime64[s]"))


def test_a_tensor_type_is_a_value() -> None:
    a, b = TensorType(DType.F32, (N, 3)), TensorType(DType.F32, (symbol("N"), 3))
    assert a == b
    assert hash(a) == hash(b)
    assert a != a.with_dtype(DType.F64)
    assert str(a) == "f32[N, 3]"
    assert a.rank == 2
    assert a.elements == 3 * N


def test_only_static_types_have_bytes() -> None:
    open_type = TensorType(DType.F16, (N, 3))
    with pytest.raises(DTypeError, match="only a run knows"):
        _ = open_type.bytes
    bound = open_type.bind({"N": 5})
    assert bound.dims == (5, 3)
    assert bound.bytes == 30
    assert TensorType(DType.I4, (3,)).bytes == 3
    assert TensorType(DType.F32, ()).bytes == 4


def test_quantisation_is_kept_with_a_shape_and_lost_with_a_type() -> None:
    quant = QuantParams((0.5,), (3,))
    type_ = TensorType(DType.U8, (4, N), quant)
    assert type_.with_shape((N, 4)).quant == quant
    assert type_.bind({"N": 2}).quant == quant
    assert type_.with_dtype(DType.I8).quant is None
    assert type_ != TensorType(DType.U8, (4, N))
    assert quant == QuantParams((0.5,), (3,))
    assert quant != QuantParams((0.5,), (3,), axis=0)


@pytest.mark.parametrize(("scales", "zeros"), [((), ()), ((1.0,), (0, 0))])
def test_scales_and_zero_points_pair(
    scales: tuple[float, ...], zeros: tuple[int, ...]
) -> None:
    with pytest.raises(DTypeError, match="pair"):
        QuantParams(scales, zeros)
