"""Depthwise convolutions over windows, tails and borders of every kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array
from edgewise.kernels.catalog.base import OUT
from edgewise.ops import DepthwiseConv, DepthwiseInputGrad, DepthwiseWeightGrad

EPS = 2.0**-24
CHANNELS = (1, 7, 8, 15, 16, 17, 24, 33)
WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel": (3, 3), "pads": (1, 1, 1, 1)},
    {"kernel": (3, 3)},
    {"kernel": (3, 3), "pads": (0, 2, 1, 0), "strides": (2, 2)},
    {"kernel": (3, 3), "pads": (1, 1, 1, 1), "strides": (1, 2), "dilations": (2, 1)},
    {"kernel": (5, 5), "pads": (2, 2, 2, 2)},
    {"kernel": (5, 5), "pads": (1, 2, 2, 1), "strides": (2, 2)},
    {"kernel": (7, 7), "pads": (3, 3, 3, 3)},
    {"kernel": (7, 7), "pads": (3, 3, 3, 3), "strides": (2, 2)},
    {"kernel": (3, 3), "pads": (2, 2, 2, 2), "dilations": (2, 2)},
    {"kernel": (3, 3), "pads": (1, 1, 1, 1), "strides": (3, 3)},
    {"kernel": (1, 3), "pads": (0, 1, 0, 1)},
    {"kernel": (1, 9), "pads": (0, 4, 0, 4)},
    {"kernel": (5, 1), "pads": (2, 0, 2, 0)},
    {"kernel": (2, 4), "pads": (1, 0, 0, 3)},
    {"kernel": (3, 3), "pads": (9, 9, 9, 9)},
)


def f32(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return found


def agree(kernels: Any, op: DepthwiseConv, *inputs: Array | None) -> Array:
    """The kernel's result, once it equals the reference whole and in pieces."""
    (whole,), (pieces,) = kernels.whole(op, inputs), kernels.pieces(op, inputs)
    np.testing.assert_array_equal(whole, pieces)
    taps = op.kernel[0] * op.kernel[1]
    bound = EPS * (4 * taps + 16)
    want = op.reference(*inputs)  # type: ignore[arg-type]  # x and w are there
    np.testing.assert_allclose(whole, want, rtol=bound, atol=bound)
    assert isinstance(whole, np.ndarray)
    return whole


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_window_over_every_tail(
    kernels: Any, window: dict[str, Any], channels: int
) -> None:
    op = DepthwiseConv(activation="relu", **window)
    taps = f32(op.kernel[0] * op.kernel[1], channels, seed=1)
    scale, shift = f32(channels, seed=2), f32(channels, seed=3)
    agree(kernels, op, f32(2, 9, 17, channels), taps, scale, shift)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_gradients_of_every_window_over_every_tail(
    kernels: Any, window: dict[str, Any], channels: int
) -> None:
    taps = f32(math.prod(window["kernel"]), channels, seed=1)
    x = f32(3, 9, 19, channels)
    dy = f32(*np.shape(DepthwiseConv(**window).reference(x, taps)), seed=2)
    gradients = (
        (DepthwiseInputGrad(**window, sizes=(9, 19)), (dy, taps)),
        (DepthwiseWeightGrad(**window), (x, dy)),
    )
    for op, inputs in gradients:
        (whole,), (pieces,) = kernels.whole(op, inputs), kernels.pieces(op, inputs)
        np.testing.assert_array_equal(whole, pieces)
        want = op.reference(*inputs)
        bound = EPS * 40 * max(np.abs(want).max(), 1.0)
        np.testing.assert_allclose(whole, want, rtol=0, atol=bound)


@pytest.mark.parametrize("width", [1, 2, 6, 7, 8, 13, 14, 15, 29])
@pytest.mark.parametrize("stride", [1, 2])
def test_every_width(kernels: Any, width: int, stride: int) -> None:
    for size in (3, 5):
        op = DepthwiseConv((size, size), (1, stride), (size // 2,) * 4)
        agree(kernels, op, f32(1, 4, width, 24), f32(size * size, 24, seed=1))


@pytest.mark.parametrize("kernel", [(3, 3), (2, 2)])
@pytest.mark.parametrize("activation", ["none", "clip", "hard_swish", "silu"])
def test_residuals_and_activations(
    kernels: Any, kernel: tuple[int, int], activation: str
) -> None:
    op = DepthwiseConv(kernel, activation=activation, alpha=-0.5, beta=0.5)
    for channels in (8, 20, 32):
        x, w = f32(1, 10, 11, channels), f32(kernel[0] * kernel[1], channels, seed=1)
        y = op.reference(x, w)
        residual = f32(*y.shape, seed=4)
        agree(kernels, op, x, w, None, f32(channels, seed=3), residual)
        agree(kernels, op, x, w, f32(channels, seed=3), None)


def test_a_residual_may_lie_in_the_memory_of_the_output(kernels: Any) -> None:
    op = DepthwiseConv((3, 3), pads=(1, 1, 1, 1), activation="relu")
    x, w = f32(1, 9, 10, 20), f32(9, 20, seed=1)
    residual = f32(1, 9, 10, 20, seed=4)
    (got,) = kernels.in_place(op, (x, w, None, None, residual), 4)
    want = op.reference(x, w, None, None, residual)
    np.testing.assert_allclose(got, want, rtol=EPS * 52, atol=EPS * 52)


@pytest.mark.parametrize("slots", [(0,), (OUT,), (0, OUT)])
def test_pixels_may_lie_apart(kernels: Any, slots: tuple[int, ...]) -> None:
    for window in WINDOWS[:3]:
        op = DepthwiseConv(activation="relu", **window)
        inputs = f32(2, 9, 17, 20), f32(9, 20, seed=1)
        (got,) = kernels.apart(op, inputs, slots)
        np.testing.assert_array_equal(got, kernels.whole(op, inputs)[0])


def test_work_is_cut_into_rows_and_channels(kernels: Any) -> None:
    op = DepthwiseConv((5, 5), pads=(2, 2, 2, 2), activation="relu")
    agree(kernels, op, f32(1, 20, 21, 200), f32(25, 200, seed=1), f32(200))


def test_what_is_not_finite_stays_below_its_windows(kernels: Any) -> None:
    x, w = f32(1, 9, 15, 24), np.abs(f32(9, 24, seed=1))
    x[0, 4, 7, 3], x[0, 0, 14, 9] = np.nan, np.inf
    x[0, 8, 0] = 3e38
    op = DepthwiseConv((3, 3), pads=(1, 1, 1, 1), activation="relu")
    got = agree(kernels, op, x, w)
    assert np.isnan(got).sum() == 9
    assert np.isinf(got[..., 9]).sum() == 4


@pytest.mark.parametrize("size", [(0, 5, 5, 8), (1, 5, 5, 0)])
def test_nothing_in_nothing_out(kernels: Any, size: tuple[int, ...]) -> None:
    agree(kernels, DepthwiseConv((3, 3)), f32(*size), f32(9, size[3]))
