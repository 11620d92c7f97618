"""Weights of few bits give the very bits that float32 weights of their values give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array
from edgewise.kernels.catalog import winograd
from edgewise.kernels.catalog.base import Call
from edgewise.ops import NarrowConv, NarrowLinear, PackNarrow, WidenPanels
from edgewise.ops.pack_narrow import WIDTHS, widened
from edgewise.types import DType, TensorType

LAST = (2, 3, 1, 0)


def f32(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    return found


def same_linear(
    kernels: Any, kind: str, sizes: tuple[int, int, int], block: int
) -> None:
    rows, k, columns = sizes
    w = PackNarrow((0, 1), 1, kind, block).reference(f32(k, columns, seed=1))
    op = NarrowLinear(columns, "relu", kind=kind, block=block)
    rest = f32(columns), f32(columns, seed=2), f32(rows, columns, seed=3)
    x = f32(rows, k)
    (got,) = kernels.whole(op, (x, w, *rest))
    (pieces,) = kernels.pieces(op, (x, w, *rest))
    wide = widened(w, kind, block, k)
    (want,) = kernels.whole(op.plain, (x, wide, *rest))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(pieces, want)


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 13, 96, 97, 203])
def test_every_number_of_rows(kernels: Any, kind: str, rows: int) -> None:
    same_linear(kernels, kind, (rows, 75, 83), 32)


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("k", [0, 1, 3, 31, 32, 33, 255, 256, 257, 600, 1000])
def test_every_length_of_the_reduction(kernels: Any, kind: str, k: int) -> None:
    for rows in (1, 9):
        for block in (32, 128):
            same_linear(kernels, kind, (rows, k, 70), block)


@pytest.mark.parametrize("kind", WIDTHS)
def test_work_is_cut_into_tasks(kernels: Any, kind: str) -> None:
    same_linear(kernels, kind, (1, 700, 1000), 64)
    same_linear(kernels, kind, (100, 700, 400), 64)


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [6, 40, 150])
def test_convolutions(
    kernels: Any, kind: str, groups: int, stride: int, channels: int
) -> None:
    weight = f32(34, channels // groups, 3, 3, seed=1)
    w = PackNarrow(LAST, groups, kind, 32).reference(weight)
    shape: dict[str, Any] = {"strides": (stride, stride), "pads": (1, 1, 1, 1)}
    op = NarrowConv(34, (3, 3), groups=groups, kind=kind, **shape)
    x = f32(2, 9, 7, channels)
    wide = widened(w, kind, 32, 9 * channels // groups)
    (got,), (want,) = kernels.whole(op, (x, w)), kernels.whole(op.plain, (x, wide))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(kernels.pieces(op, (x, w))[0], want)


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("channels", [1, 5, 40])
def test_minimal_filtering(kernels: Any, kind: str, size: int, channels: int) -> None:
    w = PackNarrow(LAST, 1, kind, 32).reference(f32(34, channels, 3, 3, seed=1))
    op = NarrowConv(34, (3, 3), pads=(1, 1, 1, 1), kind=kind)
    x, wide = f32(2, 9, 7, channels), widened(w, kind, 32, 9 * channels)
    block = 9 * channels if kind == "f16" else 32
    made = []
    for each, panels, how in ((op, w, (kind, block)), (op.plain, wide, ("f32",))):
        types = (TensorType(DType.F32, x.shape), type_of(panels))
        call = Call(each, types, (each.infer(*types),), fixed=frozenset({1}))
        binding = winograd.bind(call, size, *how)
        assert binding is not None
        made += kernels.bound(call, binding, (x, panels), whole=False)
    np.testing.assert_array_equal(*made)


def type_of(x: Array) -> TensorType:
    return TensorType(DType.of(x.dtype), x.shape)


def test_every_half_is_widened_exactly(kernels: Any) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(16, -1, 16)
    op = WidenPanels(halves.shape[1])
    (got,) = kernels.whole(op, (halves,))
    np.testing.assert_array_equal(got, halves.astype(np.float32))


@pytest.mark.parametrize("kind", ["i8", "i4"])
def test_every_byte_is_widened_exactly(kernels: Any, kind: str) -> None:
    raw = np.random.default_rng(0).integers(0, 256, (5, 4 * 64 + 100 * WIDTHS[kind]))
    stored = raw.astype(np.uint8)
    op = WidenPanels(100, kind, 32)
    (got,) = kernels.whole(op, (stored,))
    np.testing.assert_array_equal(got, op.reference(stored))
