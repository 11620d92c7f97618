"""Layers against onnxruntime: one-node models over the same inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import Array
from edgewise.ops import (
    AveragePool,
    BatchNorm,
    Conv,
    DepthwiseConv,
    Gru,
    InstanceNorm,
    LayerNorm,
    LogSoftmax,
    Lrn,
    Lstm,
    MaxPool,
    PackPanels,
    PackTaps,
    Rnn,
    Softmax,
)

Run = Callable[..., Any]
CLOSE: dict[str, Any] = {"rtol": 2e-5, "atol": 2e-6}
RNG = np.random.default_rng(5)


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def last(x: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def first(x: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


WINDOWS: list[dict[str, Any]] = [
    {"kernel": (3, 3)},
    {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 0, 2, 1)},
    {"kernel": (2, 3), "dilations": (2, 1), "pads": (0, 2, 0, 1)},
    {"kernel": (1, 1), "strides": (2, 2)},
]


def attributes(window: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in window.items() if key != "kernel"}
    return {"kernel_shape": window["kernel"], **rest}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("inputs", "outputs", "groups"), [(3, 17, 1), (6, 4, 2)])
def test_conv(
    onnx_run: Run, window: dict[str, Any], inputs: int, outputs: int, groups: int
) -> None:
    x, bias = f32(2, inputs, 9, 8), f32(outputs)
    w = f32(outputs, inputs // groups, *window["kernel"])
    panels = PackPanels((2, 3, 1, 0), groups=groups).reference(w)
    op = Conv(outputs, groups=groups, **window)
    want = onnx_run("Conv", x, w, bias, group=groups, **attributes(window))
    got = first(op.reference(last(x), panels, None, bias))
    np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.parametrize("window", WINDOWS)
def test_depthwise_conv(onnx_run: Run, window: dict[str, Any]) -> None:
    x, w = f32(2, 5, 9, 8), f32(5, 1, *window["kernel"])
    want = onnx_run("Conv", x, w, group=5, **attributes(window))
    got = DepthwiseConv(**window).reference(last(x), PackTaps().reference(w))
    np.testing.assert_allclose(first(got), want, **CLOSE)


@pytest.mark.parametrize("window", WINDOWS[:3])
def test_pools(onnx_run: Run, window: dict[str, Any]) -> None:
    x = f32(2, 3, 9, 8)
    want = onnx_run("MaxPool", x, **attributes(window))
    np.testing.assert_array_equal(first(MaxPool(**window).reference(last(x))), want)
    for count in (False, True):
        want = onnx_run(
            "AveragePool", x, count_include_pad=int(count), **attributes(window)
        )
        op = AveragePool(**window, count_include_pad=count)
        np.testing.assert_allclose(first(op.reference(last(x))), want, **CLOSE)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("linear", [False, True])
def test_gru(onnx_run: Run, direction: str, linear: bool) -> None:
    ways = 2 if direction == "bidirectional" else 1
    x, w, r = f32(4, 2, 3), f32(ways, 15, 3), f32(ways, 15, 5)
    bias, h = f32(ways, 30), f32(ways, 2, 5)
    want = onnx_run(
        "GRU", x, w, r, bias, None, h, outputs=2,
        hidden_size=5, direction=direction, linear_before_reset=int(linear),
    )  # fmt: skip
    op = Gru(5, direction, linear_before_reset=linear)
    got = op.reference(x, packed(w), packed(r), bias, h)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


def packed(w: Array) -> Array:
    return PackPanels((0, 2, 1), batch=1).reference(w)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("with_peephole", [False, True])
def test_lstm(onnx_run: Run, direction: str, with_peephole: bool) -> None:
    ways = 2 if direction == "bidirectional" else 1
    x, w, r = f32(4, 2, 3), f32(ways, 20, 3), f32(ways, 20, 5)
    bias, h, c = f32(ways, 40), f32(ways, 2, 5), f32(ways, 2, 5)
    hole = f32(ways, 15) if with_peephole else None
    want = onnx_run(
        "LSTM", x, w, r, bias, None, h, c, hole, outputs=3,
        hidden_size=5, direction=direction,
    )  # fmt: skip
    got = Lstm(5, direction).reference(x, packed(w), packed(r), bias, h, c, hole)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_rnn(onnx_run: Run, activation: str) -> None:
    x, w, r, bias = f32(4, 2, 3), f32(2, 5, 3), f32(2, 5, 5), f32(2, 10)
    want = onnx_run(
        "RNN", x, w, r, bias, outputs=2, hidden_size=5, direction="bidirectional",
        activations=[activation.capitalize()] * 2,
    )  # fmt: skip
    op = Rnn(5, "bidirectional", activation=activation)
    got = op.reference(x, packed(w), packed(r), bias)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, **CLOSE)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmaxes(onnx_run: Run, axis: int) -> None:
    x = 5 * f32(3, 7, 5)
    want = onnx_run("Softmax", x, axis=axis)
    np.testing.assert_allclose(Softmax(axis).reference(x), want, **CLOSE)
    want = onnx_run("LogSoftmax", x, axis=axis)
    np.testing.assert_allclose(LogSoftmax(axis).reference(x), want, **CLOSE)


@pytest.mark.parametrize("axis", [1, 2])
def test_layer_norm(onnx_run: Run, axis: int) -> None:
    x = f32(3, 7, 5)
    scale, shift = f32(*x.shape[axis:]), f32(*x.shape[axis:])
    want = onnx_run("LayerNormalization", x, scale, shift, axis=axis)
    np.testing.assert_allclose(
        LayerNorm(axis).reference(x, scale, shift), want, **CLOSE
    )


def test_batch_norm_instance_norm_and_lrn(onnx_run: Run) -> None:
    x, scale, shift = f32(2, 5, 4, 3), f32(5), f32(5)
    mean, var = f32(5), np.abs(f32(5)) + np.float32(0.1)
    want = onnx_run("BatchNormalization", x, scale, shift, mean, var, epsilon=1e-3)
    got = BatchNorm(1, 1e-3).reference(x, scale, shift, mean, var)
    np.testing.assert_allclose(got, want, **CLOSE)
    want = onnx_run("InstanceNormalization", x, scale, shift)
    got = InstanceNorm().reference(last(x), scale, shift)
    np.testing.assert_allclose(first(got), want, **CLOSE)
    want = onnx_run("LRN", x, size=3, alpha=0.1, beta=0.5, bias=2.0)
    got = Lrn(3, 0.1, 0.5, 2.0).reference(last(x))
    np.testing.assert_allclose(first(got), want, **CLOSE)
