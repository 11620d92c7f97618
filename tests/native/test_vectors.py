"""The vector type and its functions, compiled here for this processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

pytest.importorskip("numba", reason="kernels are compiled from Numba code")

from numba import njit

from edgewise.kernels.native import math, memory, vector
from edgewise.kernels.native.abi import FLAGS

Array = np.ndarray[Any, np.dtype[Any]]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1.2e-38, 3.4e38, -3.4e38]
WIDE = np.concatenate(
    [
        np.linspace(-110, 100, 40001),
        np.linspace(-2, 2, 20001),
        np.geomspace(1e-30, 1, 3001),
        -np.geomspace(1e-30, 1, 3001),
    ]
)
POSITIVE = np.concatenate(
    [np.geomspace(1e-45, 3.4e38, 40001), np.linspace(0.5, 2, 9001)]
)


def compiled(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """``function`` over an array, its last lanes too."""

    @njit(error_model="numpy", fastmath=set(FLAGS))  # type: ignore[untyped-decorator]
    def loop(x, y, n):  # type: ignore[no-untyped-def]  # Numba types it
        for i in range(0, n, 16):
            v = memory.load_part(x + 4 * i, n - i)
            memory.store_part(y + 4 * i, function(v), n - i)

    def run(x: Array) -> Array:
        y = np.full(x.size + 16, 7, np.float32)
        loop(x.ctypes.data, y.ctypes.data, x.size)
        assert (y[x.size :] == 7).all(), "wrote beyond its lanes"
        return y[: x.size]

    return run


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))  # type: ignore[no-any-return]


# Ulp that the documentation of each promises, and where.
@pytest.mark.parametrize(
    ("function", "exact", "ulp", "at"),
    [
        (math.exp, np.exp, 1.2, WIDE),
        (math.exp2_of_negative, np.exp2, 2.5, WIDE[(WIDE > -125) & (WIDE < 126)]),
        (math.expm1, np.expm1, 2.0, WIDE),
        (math.tanh, np.tanh, 3.0, WIDE),
        (math.sigmoid, sigmoid, 3.0, WIDE[WIDE > -87]),
        (math.erf, special.erf, 3.0, WIDE),
        (math.log, np.log, 2.0, POSITIVE),
        (math.log1p, np.log1p, 3.0, np.concatenate([WIDE[WIDE >= -0.5], POSITIVE])),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_keep_their_bounds(
    function: Any, exact: Callable[[Array], Array], ulp: float, at: Array
) -> None:
    x = at.astype(np.float32)
    got = compiled(function)(x).astype(np.float64)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64))
        near = want.astype(np.float32)
        finite = np.isfinite(near)
        error = np.abs(got - want) / np.spacing(np.abs(near))
    np.testing.assert_array_equal(got[~finite], near[~finite])
    assert error[finite].max() <= ulp


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (math.exp, np.exp),
        (math.expm1, np.expm1),
        (math.tanh, np.tanh),
        (math.erf, special.erf),
        (math.log, np.log),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_at_their_limits(
    function: Any, exact: Callable[[Array], Array]
) -> None:
    x = np.array(SPECIAL, np.float32)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(compiled(function)(x), want, rtol=1e-6, atol=1e-45)


def test_the_error_function_of_normal_numbers_keeps_its_bound() -> None:
    x = np.concatenate([WIDE, np.linspace(-6, 6, 100_001)]).astype(np.float32)
    want = special.erf(x.astype(np.float64) / np.sqrt(2))
    assert np.abs(compiled(math.erf_of_normal)(x) - want).max() < 3.2e-7


def test_the_power_of_negative_numbers_ends_at_zero() -> None:
    x = np.array([-np.inf, -1e30, -126.0, -125.6, np.nan, 0.0, -0.0], np.float32)
    x.view(np.uint32)[4] += 1  # a NaN whose low bits say something
    got = compiled(math.exp2_of_negative)(x)
    np.testing.assert_array_equal(got, [0, 0, 0, 0, np.nan, 1, 1])


@pytest.mark.parametrize("n", range(18))
def test_parts_touch_their_lanes_only(n: int) -> None:
    x = np.arange(1, n + 1, dtype=np.float32)
    run = compiled(vector.absolute)
    np.testing.assert_array_equal(run(x), x)


def test_lanes_fold_to_one() -> None:
    @njit  # type: ignore[untyped-decorator]
    def folds(x):  # type: ignore[no-untyped-def]
        v = memory.load(x)
        return vector.sum_lanes(v), vector.max_lanes(v), vector.min_lanes(v)

    x = np.arange(16, dtype=np.float32) - 3
    assert folds(x.ctypes.data) == (72, 12, -3)
    x[5] = np.nan
    assert np.isnan(folds(x.ctypes.data)).all()


def test_extremes_pass_a_nan_on_from_either_side() -> None:
    @njit  # type: ignore[untyped-decorator]
    def extremes(x, y, out):  # type: ignore[no-untyped-def]
        a, b = memory.load(x), memory.load(y)
        memory.store(out, vector.maximum(a, b))
        memory.store(out + 64, vector.minimum(a, b))

    x, y = np.zeros(16, np.float32), np.ones(16, np.float32)
    x[0], y[1] = np.nan, np.nan
    out = np.zeros((2, 16), np.float32)
    extremes(x.ctypes.data, y.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, [np.maximum(x, y), np.minimum(x, y)])


def test_a_bounded_nan_stays() -> None:
    @njit  # type: ignore[untyped-decorator]
    def bounded(x, out):  # type: ignore[no-untyped-def]
        v = vector.at_least(memory.load(x), vector.splat(-1.0))
        memory.store(out, vector.at_most(v, vector.splat(1.0)))

    x = np.array([np.nan, -5, 5, 0.5] * 4, np.float32)
    out = np.zeros(16, np.float32)
    bounded(x.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, np.clip(x, -1, 1))


def test_operators_and_conversions() -> None:
    @njit  # type: ignore[untyped-decorator]
    def mixed(x, out):  # type: ignore[no-untyped-def]
        v, two = memory.load(x), vector.splat(2.0)
        low = (v < two) & ~(v == vector.splat(0.0)) | vector.is_nan(v)
        memory.store(out, vector.select(low, -v, v / two - two * v + two))
        whole = vector.to_i32(v) + vector.lane_index()
        memory.store(out + 64, vector.to_f32(whole << vector.splat_i32(1)))
        memory.store(out + 128, vector.rint(v))

    x = np.array([0, 0.5, 1.5, 2.5, -0.5, -7.25, 1e9, 3] * 2, np.float32)
    out = np.zeros((3, 16), np.float32)
    mixed(x.ctypes.data, out.ctypes.data)
    low = (x < 2) & (x != 0)
    np.testing.assert_array_equal(out[0], np.where(low, -x, x / 2 - 2 * x + 2))
    whole = 2 * (np.trunc(x).astype(np.int64) + np.arange(16))
    np.testing.assert_array_equal(out[1], whole.astype(np.float32))
    np.testing.assert_array_equal(out[2], np.rint(x))
