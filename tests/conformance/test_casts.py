"""Casts between all element types, and other ops on elements of few bits."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from edgewise.errors import DTypeError
from edgewise.ir.op import Array
from edgewise.ir.reference import outputs
from edgewise.ops import BitCast, Cast, Softmax
from edgewise.types import DType, TensorType

NUMERIC = [d for d in DType if d not in {DType.STRING, DType.C64, DType.C128}]
SMALL = np.asarray([0, 1, 2, 4])  # powers of two that even the narrowest float has


def run(op: Cast | BitCast | Softmax, x: Array) -> Array:
    type_ = op.infer(TensorType(DType.of(x.dtype), x.shape))
    (y,) = outputs(op, [x], (type_,))
    assert isinstance(y, np.ndarray)
    return y


@pytest.mark.parametrize(("source", "target"), [*itertools.product(NUMERIC, NUMERIC)])
def test_what_both_types_have_stays(source: DType, target: DType) -> None:
    numbers = SMALL[1:] if DType.F8E8M0FNU in {source, target} else SMALL
    for narrow in {source, target} & {DType.BOOL, DType.I2, DType.U2}:
        numbers = numbers[numbers < (2 if narrow is not DType.U2 else 3)]
    x = numbers.astype(source.numpy)
    y = run(Cast(target.value), x)
    assert y.dtype == target.numpy
    np.testing.assert_array_equal(y.astype("f8"), numbers)


@pytest.mark.parametrize(
    ("target", "largest", "infinite"),
    [
        ("f8e4m3fn", 448, np.nan),
        ("f8e4m3fnuz", 240, np.nan),
        ("f8e5m2", 57344, np.inf),
        ("f8e5m2fnuz", 57344, np.nan),
    ],
)
@pytest.mark.parametrize("source", ["f2", "f4", "f8"])
def test_eight_bits_saturate_or_overflow(
    source: str, target: str, largest: float, infinite: float
) -> None:
    x = np.asarray([np.inf, -np.inf, np.nan, 65504, -65504], source)
    saturated = run(Cast(target), x).astype("f8")
    ends = [largest, -largest, np.nan, largest, -largest]
    np.testing.assert_array_equal(saturated, ends)
    open_ = run(Cast(target, saturate=False), x).astype("f8")
    ends = [infinite, -infinite, np.nan, infinite, -infinite]
    np.testing.assert_array_equal(open_, ends)


@pytest.mark.parametrize(
    ("rounding", "powers"),
    [
        ("up", [1, 2, 2, 2, 4]),
        ("down", [1, 1, 1, 2, 2]),
        ("nearest", [1, 1, 2, 2, 4]),
    ],
)
def test_powers_of_two_are_rounded_as_asked(rounding: str, powers: list[int]) -> None:
    x = np.asarray([1.0, 1.25, 1.5, 2.0, 3.5], "f4")
    y = run(Cast("f8e8m0fnu", rounding=rounding), x)
    np.testing.assert_array_equal(y.astype("f8"), powers)


def test_powers_of_two_end_at_their_exponents() -> None:
    x = np.asarray([0.0, 1e-300, 1e300, np.inf, np.nan, -1.0])
    saturated = run(Cast("f8e8m0fnu"), x).astype("f8")
    ends = [2.0**-127, 2.0**-127, 2.0**127, 2.0**127, np.nan, np.nan]
    np.testing.assert_array_equal(saturated, ends)
    assert np.isnan(run(Cast("f8e8m0fnu", saturate=False), x).astype("f8")).all()


def test_a_rounding_that_is_none_is_refused() -> None:
    with pytest.raises(DTypeError, match="sideways"):
        Cast("f8e8m0fnu", rounding="sideways").infer(TensorType(DType.F32, (1,)))


@pytest.mark.parametrize("source", ["f4", "f2", "i8", "i2"])
def test_four_and_two_bits_keep_the_lower_ones(source: str) -> None:
    x = np.asarray([-9, -8, -1, 0, 7, 8, 15], source)
    want = {
        "i4": [7, -8, -1, 0, 7, -8, -1],
        "u4": [7, 8, 15, 0, 7, 8, 15],
        "i2": [-1, 0, -1, 0, -1, 0, -1],
        "u2": [3, 0, 3, 0, 3, 0, 3],
    }
    for target, numbers in want.items():
        y = run(Cast(target), x)
        np.testing.assert_array_equal(y.astype("i8"), numbers, target)


def test_wide_integers_take_the_nearest_end_and_nan_is_zero() -> None:
    x = np.asarray([1e30, -1e30, np.nan, 300.7, -300.7], "f4")
    np.testing.assert_array_equal(run(Cast("i8"), x), [127, -128, 0, 127, -128])
    np.testing.assert_array_equal(run(Cast("u8"), x), [255, 0, 0, 255, 0])
    np.testing.assert_array_equal(run(Cast("i64"), x)[:2], [2**63 - 1, -(2**63)])


@pytest.mark.parametrize(
    ("source", "target"),
    [("bf16", "u16"), ("i4", "u4"), ("u4", "f4e2m1fn"), ("f8e5m2", "u8"), ("u2", "i2")],
)
def test_bits_of_narrow_types_go_there_and_back(source: str, target: str) -> None:
    dtype = DType(source)
    codes = np.arange(2 ** min(dtype.width, 8))
    carrier = np.uint16 if dtype.bits == 16 else np.uint8
    kind = carrier if dtype.width == dtype.bits else dtype.numpy
    x = codes.astype(carrier).astype(kind).view(dtype.numpy)
    y = run(BitCast(target), x)
    assert y.dtype == DType(target).numpy
    mask = 2**dtype.width - 1
    np.testing.assert_array_equal(y.view(carrier) & mask, codes)
    back = run(BitCast(source), y)
    np.testing.assert_array_equal(back.view(carrier) & mask, codes)


def test_bits_of_another_number_are_refused() -> None:
    for type_, target in ((DType.F32, "i64"), (DType.I4, "i8"), (DType.STRING, "u8")):
        with pytest.raises(DTypeError, match="as many bits"):
            BitCast(target).infer(TensorType(type_, (3,)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("length", [1, 6, 9, 300, 3000])
def test_a_softmax_of_sixteen_bits_loses_nothing_in_long_sums(
    dtype: type, length: int
) -> None:
    x = np.zeros((2, length), dtype)
    y = run(Softmax(1), x).astype("f8")
    np.testing.assert_allclose(y, 1 / length, float(ml_dtypes.finfo(dtype).eps))


def test_a_softmax_of_sixteen_bits_survives_masks_and_nan() -> None:
    x = np.asarray([[0, -np.inf, 1], [np.nan, 0, 0]], ml_dtypes.bfloat16)
    y = run(Softmax(1), x).astype("f8")
    np.testing.assert_allclose(y[0], [0.269, 0, 0.731], 1e-2)
    assert np.isnan(y[1]).all()
