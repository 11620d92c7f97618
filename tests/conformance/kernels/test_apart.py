"""Kernels on tensors whose rows lie apart, as parts of wider ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array, Op
from edgewise.kernels.catalog.base import OUT
from edgewise.ops import (
    Add,
    ByteConv,
    ByteLinear,
    Concat,
    Conv,
    DepthwiseConv,
    Expand,
    Linear,
    PackPanels,
    PackQuads,
    PackTaps,
    Slice,
    Transpose,
)

CHANNELS_LAST = (2, 3, 1, 0)


def f32(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return found


def agree(
    kernels: Any, op: Op, *inputs: Array | None, slots: tuple[int, ...] = (0, OUT)
) -> None:
    """The same bits, wherever the rows lie."""
    (want,) = kernels.whole(op, inputs)
    for some in {slots, slots[:1], slots[1:]} - {()}:
        (found,) = kernels.apart(op, inputs, some)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("rows", [1, 5, 6, 7, 97])
@pytest.mark.parametrize("columns", [1, 7, 15, 16, 17, 33])
def test_products(kernels: Any, rows: int, columns: int) -> None:
    w = PackPanels((0, 1)).reference(f32(19, columns, seed=1))
    for activation in ("none", "silu"):
        inputs = f32(rows, 19), w, f32(columns), f32(columns, seed=2)
        agree(kernels, Linear(columns, activation), *inputs)


@pytest.mark.parametrize("channels", [1, 7, 16, 17, 33])
def test_pointwise_convolutions(kernels: Any, channels: int) -> None:
    w = PackPanels(CHANNELS_LAST).reference(f32(channels, 9, 1, 1))
    agree(kernels, Conv(channels, (1, 1)), f32(2, 3, 5, 9), w)


@pytest.mark.parametrize("channels", [1, 7, 16, 17, 33])
def test_convolutions_write_apart(kernels: Any, channels: int) -> None:
    w = PackPanels(CHANNELS_LAST).reference(f32(channels, 9, 3, 3))
    op = Conv(channels, (3, 3), pads=(1, 1, 1, 1))
    agree(kernels, op, f32(2, 4, 13, 9), w, slots=(OUT,))
    taps, depthwise = f32(channels, 1, 3, 3), DepthwiseConv((3, 3))
    x = f32(2, 4, 13, channels)
    agree(kernels, depthwise, x, PackTaps().reference(taps), slots=(OUT,))


def some_bytes(*shape: int, dtype: type = np.uint8, low: int = 0) -> Array:
    found: Array = np.random.default_rng(0).integers(low, low + 64, shape).astype(dtype)
    return found


@pytest.mark.parametrize("bits", [6, 8])
def test_products_of_bytes(kernels: Any, bits: int) -> None:
    small = some_bytes(20, 33, dtype=np.int8, low=-32) // 2
    w, scale = PackQuads((0, 1)).reference(small), f32(33)
    kind: dict[str, Any] = {
        "x_zero": 3,
        "y_type": "u8",
        "y_scale": 8.0,
        "weight_bits": bits,
    }
    for rows in (1, 7, 97):
        op = ByteLinear(33, **kind)
        agree(kernels, op, some_bytes(rows, 20), w, scale, slots=(OUT,))
    taps = some_bytes(17, 8, 3, 3, dtype=np.int8, low=-32) // 2
    w = PackQuads(CHANNELS_LAST).reference(taps)
    conv = ByteConv(17, kernel=(3, 3), pads=(1, 1, 1, 1), **kind)
    agree(kernels, conv, some_bytes(2, 4, 13, 8), w, f32(17), slots=(OUT,))


def test_a_residual_keeps_rows_together(kernels: Any) -> None:
    w = PackPanels((0, 1)).reference(f32(4, 8))
    inputs = f32(3, 4), w, None, None, f32(3, 8)
    assert kernels.apart(Linear(8), inputs, (OUT,)) is None


def test_elementwise(kernels: Any) -> None:
    agree(kernels, Add(), f32(3, 4, 33), f32(3, 4, 33, seed=1), slots=(0, 1))
    agree(kernels, Add(), f32(3, 4, 33), f32(33, seed=1), slots=(0,))
    agree(kernels, Add(), f32(3, 4, 33), f32(3, 4, 1, seed=1), slots=(0,))


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 260])
@pytest.mark.parametrize("rows", [1, 7, 8, 15, 16, 17, 24, 33, 4100])
def test_transposes(kernels: Any, rows: int, columns: int) -> None:
    agree(kernels, Transpose((0, 2, 1)), f32(2, columns, rows))
    agree(kernels, Transpose((1, 2, 0)), f32(columns, 3, rows % 100))
    x = np.arange(columns * rows, dtype=np.int32).reshape(columns, rows)
    (found,) = kernels.pieces(Transpose((1, 0)), (x,))
    np.testing.assert_array_equal(found, x.T)


def test_copies(kernels: Any) -> None:
    agree(kernels, Transpose((0, 2, 1)), f32(2, 17, 33))
    agree(kernels, Slice((0, 1, 3), (2, 3, 20), (1, 1, 1)), f32(2, 5, 33))
    agree(kernels, Expand((4, 3, 17)), f32(3, 17))
    agree(kernels, Concat(1), f32(2, 3, 5), f32(2, 4, 5), slots=(0, 1, OUT))
    agree(kernels, Concat(2), f32(2, 3, 5), f32(2, 3, 7), slots=(0, 1, OUT))
