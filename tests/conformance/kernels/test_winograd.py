"""Convolutions by minimal filtering equal the plain meaning, within a stated bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array
from edgewise.kernels.catalog import winograd
from edgewise.kernels.catalog.base import OUT, Binding, Call, find
from edgewise.kernels.native.transform import matrices
from edgewise.ops import Conv, PackPanels
from edgewise.types import DType, TensorType

SIZES = (2, 4)
# Error relative to the largest sum.  A transform makes numbers larger by its norm (of
# rows in A and B, of their products in two directions) and rounding goes with them:
# five times an ordinary sum's for F(4 x 4).
EPS = 2.0**-24
BOUND = {2: 8.0, 4: 40.0}
FIXED = frozenset({1})


def f32(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return found


def weights(outputs: int, inputs: int, seed: int = 1) -> Array:
    return PackPanels((2, 3, 1, 0)).reference(f32(outputs, inputs, 3, 3, seed=seed))


def call_of(op: Conv, inputs: tuple[Array | None, ...]) -> Call:
    types = tuple(
        None if x is None else TensorType(DType.of(x.dtype), x.shape) for x in inputs
    )
    return Call(op, types, op.infer_all(types), fixed=FIXED)


def bound(op: Conv, size: int, *inputs: Array | None) -> tuple[Call, Binding]:
    call = call_of(op, inputs)
    binding = winograd.bind(call, size)
    assert binding is not None
    return call, binding


def agree(kernels: Any, op: Conv, size: int, *inputs: Array | None) -> Array:
    """The result, once it equals the reference, and all at once what pieces give."""
    call, binding = bound(op, size, *inputs)
    (whole,) = kernels.bound(call, binding, inputs, whole=True)
    (pieces,) = kernels.bound(call, binding, inputs, whole=False)
    np.testing.assert_array_equal(whole, pieces)
    want = op.reference(*inputs)
    channels = inputs[0].shape[3] if inputs[0] is not None else 0
    limit = EPS * BOUND[size] * np.sqrt(9 * channels) * max(np.abs(want).max(), 1.0)
    assert np.abs(whole - want).max() <= limit
    found: Array = whole
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3, 7, 15, 16, 17, 33, 64])
def test_every_tail_of_channels(kernels: Any, size: int, channels: int) -> None:
    op = Conv(18, (3, 3), pads=(1, 1, 1, 1), activation="relu")
    agree(kernels, op, size, f32(1, 9, 11, channels), weights(18, channels))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("outputs", [1, 7, 15, 16, 17, 33, 64])
def test_every_tail_of_outputs(kernels: Any, size: int, outputs: int) -> None:
    op = Conv(outputs, (3, 3), pads=(1, 1, 1, 1), activation="clip", beta=0.5)
    scale, shift = f32(outputs), f32(outputs, seed=2)
    x, w = f32(2, 6, 5, 20), weights(outputs, 20)
    agree(kernels, op, size, x, w, scale, shift)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("width", [1, 4, 6, 7])
def test_every_cut_of_an_image(
    kernels: Any, size: int, height: int, width: int
) -> None:
    for pads in ((1, 1, 1, 1), (2, 3, 0, 1), (5, 2, 2, 6)):
        op = Conv(5, (3, 3), pads=pads)
        agree(kernels, op, size, f32(2, height, width, 18), weights(5, 18))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tiles", [*range(1, 15), 24, 25, 61, 96, 97, 400])
def test_every_number_of_tiles(kernels: Any, size: int, tiles: int) -> None:
    op = Conv(40, (3, 3), pads=(1, 1, 1, 1))
    agree(kernels, op, size, f32(tiles, size, size, 5), weights(40, 5))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("activation", ["none", "relu", "silu"])
@pytest.mark.parametrize("shape", [(2, 7, 9, 20), (1, 7, 9, 20), (9, 20), (20,)])
def test_a_residual_is_added(
    kernels: Any, size: int, activation: str, shape: tuple[int, ...]
) -> None:
    op = Conv(20, (3, 3), pads=(1, 1, 1, 1), activation=activation)
    x, residual = f32(2, 7, 9, 16), f32(*shape, seed=3)
    agree(kernels, op, size, x, weights(20, 16), None, None, residual)


@pytest.mark.parametrize("channels", [20, 32, 40])
def test_pixels_may_lie_apart(kernels: Any, channels: int) -> None:
    op = Conv(20, (3, 3), pads=(1, 1, 1, 1), activation="silu")
    inputs = f32(2, 28, 30, channels), weights(20, channels)
    for slots in ((0,), (OUT,), (0, OUT)):
        (got,) = kernels.apart(op, inputs, slots, FIXED)
        want = op.reference(*inputs)
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("size", SIZES)
def test_work_is_cut_by_panels_and_by_blocks(kernels: Any, size: int) -> None:
    op = Conv(150, (3, 3), pads=(1, 1, 1, 1))
    agree(kernels, op, size, f32(1, 10, 10, 130), weights(150, 130))
    op = Conv(34, (3, 3), pads=(1, 1, 1, 1))
    agree(kernels, op, size, f32(1, 57, 58, 20), weights(34, 20))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_the_tiles_that_see_it(
    kernels: Any, size: int, bad: float
) -> None:
    x = f32(1, 16, 16, 20)
    x[0, 5, 5, 2] = bad
    op = Conv(16, (3, 3), pads=(1, 1, 1, 1))
    inputs = x, weights(16, 20)
    (got,) = kernels.bound(*bound(op, size, *inputs), inputs, whole=True)
    seen = np.isfinite(got).all(axis=3)[0]
    assert not seen[4:7, 4:7].any(), "a window over it must show it"
    clean = np.ones_like(seen)
    clean[5 - size : 5 + size + 2, 5 - size : 5 + size + 2] = False
    assert seen[clean].all(), "it went beyond its tiles"


@pytest.mark.parametrize("size", SIZES)
def test_extreme_numbers_scale(kernels: Any, size: int) -> None:
    op = Conv(16, (3, 3), pads=(1, 1, 1, 1))
    x, w = f32(1, 8, 8, 16), weights(16, 16)
    (one,) = kernels.bound(*bound(op, size, x, w), (x, w), whole=True)
    for power in (2.0**-60, 2.0**100):
        scaled = (x * np.float32(power), w)
        (got,) = kernels.bound(*bound(op, size, *scaled), scaled, whole=True)
        np.testing.assert_array_equal(got, one * np.float32(power))


@pytest.mark.parametrize("size", SIZES)
def test_the_matrices_filter_exactly(size: int) -> None:
    made = [np.array(matrix) for matrix in matrices(size)]
    outputs, of_weights, inputs = made
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(size + 2), rng.standard_normal(3)
    want = [x[i : i + 3] @ w for i in range(size)]
    got = outputs @ ((of_weights @ w) * (inputs @ x))
    np.testing.assert_allclose(got, want, atol=1e-13)


def test_it_is_chosen_for_dense_windows_over_fixed_weights_alone() -> None:
    def symbols(op: Conv, fixed: frozenset[int] = FIXED, groups: int = 1) -> str:
        x = TensorType(DType.F32, (1, 28, 28, 128))
        reduced = op.kernel[0] * op.kernel[1] * 128 // groups
        w = TensorType(DType.F32, (8, reduced, 16))
        binding = find(Call(op, (x, w), op.infer_all((x, w)), fixed=fixed))
        assert binding is not None
        return binding.launches[-1].symbol

    same = (1, 1, 1, 1)
    assert symbols(Conv(128, (3, 3), pads=same)) == "winograd4_products_f32"
    assert symbols(Conv(128, (3, 3), pads=same), frozenset()) == "conv_f32"
    assert symbols(Conv(128, (3, 3), (2, 2), same)) == "conv_f32"
    assert symbols(Conv(128, (3, 3), dilations=(2, 2))) == "conv_f32"
    assert symbols(Conv(128, (5, 5))) == "conv_f32"
    assert symbols(Conv(128, (3, 3), pads=same, groups=2), groups=2) == "conv_f32"


def test_it_is_not_chosen_where_weights_would_be_all_there_is_to_read() -> None:
    op = Conv(512, (3, 3), pads=(1, 1, 1, 1))
    x = TensorType(DType.F32, (1, 3, 3, 512))
    w = TensorType(DType.F32, (32, 9 * 512, 16))
    assert winograd.choose(Call(op, (x, w), op.infer_all((x, w)), fixed=FIXED)) == 0
