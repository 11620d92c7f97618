"""Products and convolutions over shapes that cut their work in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array, Op
from edgewise.ops import Conv, DepthwiseConv, Linear, MatMul, PackPanels

# Rounding of a sum of K products: half an ulp for each, and terms are near one.
EPS = 2.0**-24
CHANNELS_LAST = (2, 3, 1, 0)


def f32(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return found


def panels(k: int, n: int) -> Array:
    return PackPanels((0, 1)).reference(f32(k, n, seed=1))


def agree(kernels: Any, op: Op, *inputs: Array | None, k: int) -> Array:
    """The kernel's result, once it equals the reference whole and in pieces."""
    (whole,), (pieces,) = kernels.whole(op, inputs), kernels.pieces(op, inputs)
    np.testing.assert_array_equal(whole, pieces)
    want = op.reference(*inputs)
    bound = EPS * (4 * k + 16)
    np.testing.assert_allclose(whole, want, rtol=bound, atol=bound)
    assert isinstance(whole, np.ndarray)
    return whole


@pytest.mark.parametrize("rows", [*range(1, 21), 49, 64, 95, 96, 97, 203])
def test_every_number_of_rows(kernels: Any, rows: int) -> None:
    agree(kernels, Linear(35), f32(rows, 19), panels(19, 35), k=19)


@pytest.mark.parametrize("rows", [7, 13, 19, 49, 96, 100])
@pytest.mark.parametrize("k", [191, 208, 400, 515])
def test_rows_of_long_reductions(kernels: Any, rows: int, k: int) -> None:
    inputs = f32(rows, k), panels(k, 40), f32(40), f32(40, seed=2), f32(rows, 40)
    agree(kernels, Linear(40, "relu"), *inputs, k=k)


@pytest.mark.parametrize("columns", [*range(1, 18), 31, 63, 64, 65, 81])
def test_every_tail_of_columns(kernels: Any, columns: int) -> None:
    for rows in (1, 8):
        scale, shift = f32(columns), f32(columns, seed=2)
        inputs = f32(rows, 5), panels(5, columns), scale, shift
        agree(kernels, Linear(columns, "relu"), *inputs, k=5)


@pytest.mark.parametrize("k", [0, 1, 3, 4, 255, 256, 257, 300, 512, 1000])
def test_every_length_of_the_reduction(kernels: Any, k: int) -> None:
    for rows in (1, 13):
        agree(kernels, Linear(17), f32(rows, k), panels(k, 17), k=k)


def test_work_is_cut_into_tasks_of_rows_and_of_panels(kernels: Any) -> None:
    agree(kernels, Linear(400), f32(100, 700), panels(700, 400), k=700)
    agree(kernels, Linear(1000), f32(1, 700), panels(700, 1000), k=700)


@pytest.mark.parametrize("shape", [(9, 33), (1, 9, 33), (33,), (1, 1, 33)])
def test_a_residual_may_repeat(kernels: Any, shape: tuple[int, ...]) -> None:
    for activation in ("none", "gelu"):
        inputs = f32(7, 9, 5), panels(5, 33), None, None, f32(*shape, seed=3)
        agree(kernels, Linear(33, activation), *inputs, k=5)


def test_a_residual_that_repeats_along_columns_is_left_to_the_reference(
    kernels: Any,
) -> None:
    inputs = f32(7, 5), panels(5, 33), None, None, f32(7, 1, seed=3)
    assert kernels.whole(Linear(33), inputs) is None


def test_what_is_not_a_number_stays_in_its_row(kernels: Any) -> None:
    x = f32(14, 40)
    x[3, 7], x[9, 0] = np.nan, np.inf
    op = Linear(20, "clip", -0.5, 0.5)
    (got,) = kernels.whole(op, (x, np.abs(panels(40, 20))))
    assert np.isnan(got[3]).all()
    assert (got[9] == 0.5).all()
    assert np.isfinite(np.delete(got, (3, 9), axis=0)).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 1, 97, 20), (1, 4, 20, 18)),
        ((2, 3, 1, 300), (2, 3, 300, 33)),
        ((5, 7, 16), (16, 40)),
        ((7, 16), (3, 2, 16, 1)),
        ((2, 1, 3, 5, 4), (6, 1, 4, 17)),
    ],
)
def test_batches_broadcast(
    kernels: Any, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    agree(kernels, MatMul(), f32(*a), f32(*b, seed=1), k=a[-1])


def convolve(
    kernels: Any, size: tuple[int, ...], outputs: int, groups: int = 1, **window: Any
) -> None:
    kernel = window["kernel"]
    inputs = size[3] // groups
    w = PackPanels(CHANNELS_LAST, groups=groups).reference(
        f32(outputs, inputs, *kernel, seed=1)
    )
    op = Conv(outputs, groups=groups, **window)
    agree(kernels, op, f32(*size), w, k=kernel[0] * kernel[1] * inputs)


WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel": (3, 3), "pads": (1, 1, 1, 1)},
    {"kernel": (3, 3), "pads": (0, 1, 2, 0), "strides": (2, 3)},
    {"kernel": (7, 7), "pads": (3, 3, 3, 3), "strides": (2, 2)},
    {"kernel": (2, 3), "dilations": (2, 3), "pads": (2, 3, 1, 0)},
    {"kernel": (1, 5), "pads": (0, 2, 0, 2)},
    {"kernel": (5, 1), "strides": (1, 2)},
    {"kernel": (1, 1), "strides": (2, 2)},
    {"kernel": (1, 1), "pads": (1, 0, 0, 2)},
    {"kernel": (3, 3), "pads": (9, 9, 9, 9), "dilations": (4, 4)},
)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_window(kernels: Any, window: dict[str, Any]) -> None:
    for channels in (1, 3, 20, 90):
        convolve(kernels, (2, 13, 15, channels), 18, **window)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_window_by_channel(kernels: Any, window: dict[str, Any]) -> None:
    taps = window["kernel"][0] * window["kernel"][1]
    for channels in (1, 15, 16, 40):
        op = DepthwiseConv(activation="relu", **window)
        scale, shift = f32(channels), f32(channels, seed=2)
        inputs = f32(2, 13, 15, channels), f32(taps, channels, seed=1), scale, shift
        agree(kernels, op, *inputs, k=taps)


@pytest.mark.parametrize("groups", [2, 3, 6])
def test_groups_share_an_output(kernels: Any, groups: int) -> None:
    window = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}
    convolve(kernels, (2, 7, 9, 12), 36, groups, **window)
    convolve(kernels, (1, 5, 5, 6), 6, groups, kernel=(1, 1))


def test_a_large_image_is_cut_into_blocks_of_pixels(kernels: Any) -> None:
    window = {"kernel": (3, 3), "pads": (1, 1, 1, 1), "strides": (2, 2)}
    convolve(kernels, (1, 60, 58, 3), 40, **window)
    convolve(kernels, (1, 20, 18, 130), 70, **window)


@pytest.mark.parametrize("width", [4, 5, 7, 8, 9, 11, 13])
def test_tiles_of_five_and_six_pixels_along_an_image(kernels: Any, width: int) -> None:
    window = {"kernel": (3, 3), "pads": (1, 1, 1, 1)}
    for channels in (4, 70, 200):
        convolve(kernels, (1, 7, width, channels), 20, **window)
    convolve(kernels, (2, 9, 2 * width, 5), 17, kernel=(3, 3), strides=(2, 2))


def test_what_is_not_a_number_reaches_only_the_windows_over_it(kernels: Any) -> None:
    x = f32(1, 9, 9, 20)
    x[0, 4, 4, 2] = np.nan
    op = Conv(16, (3, 3), pads=(1, 1, 1, 1), activation="relu")
    w = PackPanels(CHANNELS_LAST).reference(f32(16, 20, 3, 3))
    (got,) = kernels.whole(op, (x, w))
    hit = np.isnan(got).all(axis=3)[0]
    assert hit[3:6, 3:6].all()
    assert hit.sum() == 9
