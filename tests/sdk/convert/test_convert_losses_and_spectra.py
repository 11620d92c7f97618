"""Losses over labels, Fourier transforms, the mel scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgewise.errors import KernelError
from edgewise.ir.op import Array

Check = Callable[..., Any]
RNG = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


# Losses


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 1, -7])
@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(
    agree_on_node: Check, op: str, reduction: str, weighted: bool, ignored: int | None
) -> None:
    labels = RNG.integers(0, 3, (4, 5))
    options = {"reduction": reduction}
    if ignored is not None:
        labels[1, :2] = ignored
        options["ignore_index"] = ignored  # type: ignore[assignment]
    inputs = [normal(4, 3, 5), labels]
    if weighted:
        inputs.append(RNG.uniform(0.5, 2, 3).astype("f4"))
    agree_on_node(op, *inputs, opset=13, **options)


def test_the_logarithms_of_a_cross_entropy_come_with_it(agree_on_node: Check) -> None:
    labels = np.array([2, 0])
    agree_on_node("SoftmaxCrossEntropyLoss", normal(2, 3), labels, opset=13, outputs=2)


def test_a_label_beyond_the_classes_stops_the_run(run: Check) -> None:
    with pytest.raises(KernelError, match="out of range"):
        run("NegativeLogLikelihoodLoss", normal(2, 3), np.array([0, 3]))


# Spectra


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 3, 8, 11])
@pytest.mark.parametrize("late", [False, True])
def test_the_transform_is_that_of_numpy(
    run: Check, inverse: int, length: int | None, late: bool
) -> None:
    x = normal(2, 8, 3, 2)
    size = None if length is None else np.array(length)
    fixed = () if late else (() if size is None else (1,)) + (2,)
    (y,) = run("DFT", x, size, np.array(1), opset=20, inverse=inverse, fixed=fixed)
    transform = np.fft.ifft if inverse else np.fft.fft
    want = transform(x[..., 0] + 1j * x[..., 1], n=length, axis=1)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], want, 1e-4, 1e-4)


@pytest.mark.parametrize("length", [7, 8])
def test_half_a_spectrum_and_back(run: Check, length: int) -> None:
    x = normal(2, length, 1)
    axis = np.array(-2)
    (half,) = run("DFT", x, None, axis, opset=20, onesided=1, fixed=(2,))
    np.testing.assert_allclose(
        half[..., 0] + 1j * half[..., 1], np.fft.rfft(x[..., 0]), 1e-4, 1e-4
    )
    options = {"onesided": 1, "inverse": 1}
    size = np.array(length)
    (back,) = run("DFT", half, size, axis, opset=20, fixed=(1, 2), **options)
    np.testing.assert_allclose(back, x, 1e-4, 1e-4)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("fixed", [(), (1, 3)])
def test_frames_of_a_signal(
    run: Check, onesided: int, windowed: bool, fixed: tuple[int, ...]
) -> None:
    x, step, length = normal(2, 37, 1), 5, 16
    window = np.hanning(length).astype("f4") if windowed else None
    inputs = (x, np.array(step), window, np.array(length))
    (y,) = run("STFT", *inputs, opset=17, onesided=onesided, fixed=fixed)
    count = (37 - length) // step + 1
    frames = np.stack([x[:, i * step :][:, :length, 0] for i in range(count)], 1)
    transform = np.fft.rfft if onesided else np.fft.fft
    want = transform(frames * (1 if window is None else window))
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], want, 1e-4, 1e-4)


def test_mel_weights_agree(agree_on_node: Check) -> None:
    numbers = [np.array(n) for n in (40, 400, 16000)]
    edges = [np.array(20.0, "f4"), np.array(8000.0, "f4")]
    agree_on_node("MelWeightMatrix", *numbers, *edges, fixed=range(5), opset=17)
    agree_on_node("MelWeightMatrix", *numbers, *edges, opset=17)
