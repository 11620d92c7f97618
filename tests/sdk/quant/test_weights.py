"""Weights as small whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from edgewise.ir.module import Role, VariableInfo
from edgewise.ops.pack import PackPanels, PackTaps
from edgewise.quant.weights import EIGHT, PAIRED, Whole, as_bytes
from edgewise.types import DType, TensorType


def made(
    weight: np.ndarray, packing: PackPanels | PackTaps, *, paired: bool, each: bool
) -> Whole:
    stored = packing.reference(weight)
    info = VariableInfo(
        "w",
        TensorType(DType.F32, stored.shape),
        Role.PARAMETER,
        stored,
        TensorType(DType.F32, weight.shape),
        packing,
    )
    return as_bytes(info, paired=paired, per_channel=each)


def sums_in_16_bits(whole: Whole) -> np.ndarray:
    """Of either sign, what is added up before it is widened."""
    assert whole.info.initial is not None
    quads = whole.info.initial.astype(np.int64)
    odd = quads.shape[1] % 2
    even = np.pad(quads, ((0, 0), (0, odd), (0, 0), (0, 0)))
    pairs = even.reshape(len(even), -1, 2, 16, 2, 2)
    return np.stack([np.maximum(side, 0).sum(axis=(2, 5)) for side in (pairs, -pairs)])


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize(
    ("shape", "groups"), [((33, 7, 3, 3), 1), ((8, 12, 1, 1), 2), ((5, 64, 5, 5), 1)]
)
@pytest.mark.parametrize("tail", [0.2, 1.0, 8.0])
def test_sums_of_pairs_fit_16_bits(
    shape: tuple[int, ...], groups: int, tail: float, *, each: bool
) -> None:
    draw = np.random.default_rng(0).standard_normal(shape)
    weight = (np.sign(draw) * np.abs(draw) ** tail).astype(np.float32)
    packing = PackPanels((2, 3, 1, 0), groups=groups)
    whole = made(weight, packing, paired=True, each=each)
    assert whole.bits == PAIRED
    sums = sums_in_16_bits(whole)
    assert 120 <= sums.max() <= 128
    kept = whole.scale.reshape(-1, 1, 1, 1)
    assert np.abs(whole.lost).max() <= 0.5001 * kept.max()


def test_a_weight_of_one_sign_keeps_half_of_each_step() -> None:
    """All weights alike are the worst: each may be 32."""
    weight = np.full((4, 16, 1, 1), 0.7, np.float32)
    whole = made(weight, PackPanels((2, 3, 1, 0)), paired=True, each=True)
    assert sums_in_16_bits(whole).max() <= 128
    assert np.abs(whole.lost).max() <= 0.51 * whole.scale.max()


def test_pairs_lose_less_than_seven_bits() -> None:
    weight = np.random.default_rng(1).standard_normal((64, 64, 3, 3))
    whole = made(
        weight.astype(np.float32), PackPanels((2, 3, 1, 0)), paired=True, each=True
    )
    most = np.abs(weight).max(axis=(1, 2, 3), keepdims=True) / 63
    lost = weight - np.rint(weight / most) * most
    seven = 10 * np.log10(np.square(weight).sum() / np.square(lost).sum())
    assert whole.sqnr > seven


def test_taps_of_depthwise_convolutions_keep_eight_bits() -> None:
    weight = np.random.default_rng(2).standard_normal((9, 1, 3, 3)).astype(np.float32)
    whole = made(weight, PackTaps(), paired=True, each=True)
    assert whole.bits == EIGHT
    assert whole.info.initial is not None
    assert np.abs(whole.info.initial.astype(int)).max() == 127
