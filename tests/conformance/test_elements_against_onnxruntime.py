"""Elements, reductions, indices against onnxruntime: one-node models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgewise.ir.op import OPS, Array
from edgewise.ops import (
    Argmax,
    Celu,
    Cumsum,
    Elu,
    Gather,
    GatherElements,
    GatherNd,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    OneHot,
    Pad,
    Prelu,
    Quantize,
    ScatterElements,
    ScatterNd,
    Selu,
    Softplus,
    Softsign,
    ThresholdedRelu,
    TopK,
    Triangle,
)

Run = Callable[..., Any]
CLOSE: dict[str, Any] = {"rtol": 2e-5, "atol": 2e-6}
RNG = np.random.default_rng(5)


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "name",
    [
        "Sum",
        "Mean",
        "Max",
        "Min",
        "Prod",
        "L1",
        "L2",
        "LogSum",
        "LogSumExp",
        "SumSquare",
    ],
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(onnx_run: Run, name: str, keepdims: bool) -> None:
    x = np.abs(f32(3, 7, 5)) + np.float32(0.1)
    core = {"LogSum": "log_sum", "LogSumExp": "log_sum_exp", "SumSquare": "sum_square"}
    ours = OPS[f"reduce_{core.get(name, name.lower())}"]
    for axes in ((1,), (0, 2)):
        numbers = np.asarray(axes)
        where: dict[str, Any] = {"axes": numbers}
        want = onnx_run(f"Reduce{name}", x, where["axes"], keepdims=int(keepdims))
        got = ours(axes, keepdims).reference(x)
        np.testing.assert_allclose(got, want, **CLOSE)


def test_indexing(onnx_run: Run) -> None:
    x = f32(4, 5, 3)
    picked = RNG.integers(-5, 5, (2, 2))
    want = onnx_run("Gather", x, picked, axis=1)
    np.testing.assert_array_equal(Gather(1).reference(x, picked), want)
    picked = RNG.integers(-5, 5, (4, 7, 3))
    want = onnx_run("GatherElements", x, picked, axis=1)
    np.testing.assert_array_equal(GatherElements(1).reference(x, picked), want)
    picked = RNG.integers(-3, 3, (4, 2, 2))
    want = onnx_run("GatherND", x, picked, batch_dims=1)
    np.testing.assert_array_equal(GatherNd(1).reference(x, picked), want)


@pytest.mark.parametrize("how", ["none", "add", "mul", "min", "max"])
def test_scattering(onnx_run: Run, how: str) -> None:
    x = f32(4, 5)
    picked = np.stack([RNG.permutation(5)[:3] - 5 for _ in range(4)])
    updates = f32(4, 3)
    want = onnx_run("ScatterElements", x, picked, updates, axis=1, reduction=how)
    got = ScatterElements(1, how).reference(x, picked, updates)
    np.testing.assert_allclose(got, want, **CLOSE)
    places = np.asarray([[0, 1], [3, -1], [2, 2]])
    want = onnx_run("ScatterND", x, places, updates[0], reduction=how)
    got = ScatterNd(how).reference(x, places, updates[0])
    np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.parametrize("largest", [False, True])
def test_top_k_argmax_and_cumsum(onnx_run: Run, largest: bool) -> None:
    x = RNG.integers(0, 4, (5, 9)).astype(np.float32)
    want = onnx_run("TopK", x, np.asarray([4]), outputs=2, axis=1, largest=int(largest))
    for ours, theirs in zip(TopK(4, 1, largest).reference(x), want, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    want = onnx_run("ArgMax", x, axis=1, keepdims=0, select_last_index=int(largest))
    got = Argmax(1, False, largest).reference(x)
    np.testing.assert_array_equal(got, want)
    for exclusive in (False, True):
        want = onnx_run(
            "CumSum", x, np.asarray(1), exclusive=int(exclusive), reverse=int(largest)
        )
        got = Cumsum(1, exclusive, largest).reference(x)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(onnx_run: Run, mode: str) -> None:
    x, pads = f32(5, 6), (1, 2, 3, 0)
    want = onnx_run("Pad", x, np.asarray(pads), mode=mode)
    np.testing.assert_array_equal(Pad(pads, mode).reference(x), want)


def test_one_hot_and_triangle(onnx_run: Run) -> None:
    indices, values = RNG.integers(-6, 7, (3, 4)), np.asarray([-1, 2], "f4")
    want = onnx_run("OneHot", indices, np.asarray(5), values, axis=1)
    np.testing.assert_array_equal(OneHot(5, 1).reference(indices, values), want)
    x = f32(2, 4, 5)
    for upper in (False, True):
        want = onnx_run("Trilu", x, np.asarray(-1), upper=int(upper))
        np.testing.assert_array_equal(Triangle(upper, -1).reference(x), want)


def test_activations(onnx_run: Run) -> None:
    x = 4 * f32(99)
    pairs: list[tuple[str, Any, dict[str, Any]]] = [
        ("LeakyRelu", LeakyRelu(0.2), {"alpha": 0.2}),
        ("Elu", Elu(0.7), {"alpha": 0.7}),
        ("Selu", Selu(), {}),
        ("Celu", Celu(0.7), {"alpha": 0.7}),
        ("HardSigmoid", HardSigmoid(0.3, 0.4), {"alpha": 0.3, "beta": 0.4}),
        ("HardSwish", HardSwish(), {}),
        ("Gelu", Gelu(), {}),
        ("Gelu", Gelu(True), {"approximate": "tanh"}),
        ("Softplus", Softplus(), {}),
        ("Softsign", Softsign(), {}),
        ("Mish", Mish(), {}),
        ("ThresholdedRelu", ThresholdedRelu(0.5), {"alpha": 0.5}),
    ]
    for name, ours, named in pairs:
        want = onnx_run(name, x, **named)
        np.testing.assert_allclose(ours.reference(x), want, **CLOSE, err_msg=name)
    slope = f32(1)
    want = onnx_run("PRelu", x, slope)
    np.testing.assert_allclose(Prelu().reference(x, slope), want, **CLOSE)


@pytest.mark.parametrize(
    "name",
    [
        "Neg",
        "Abs",
        "Sqrt",
        "Reciprocal",
        "Exp",
        "Log",
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
        "Erf",
        "Sign",
        "Floor",
        "Ceil",
        "Round",
        "Relu",
        "Sigmoid",
        "Tanh",
        "IsNaN",
        "IsInf",
    ],
)
def test_unary(onnx_run: Run, name: str) -> None:
    x = np.concatenate([3 * f32(99), np.asarray([0.5, 1.5, -2.5, np.nan], "f4")])
    want = onnx_run(name, x)
    got = OPS[name.lower()]().reference(x)
    np.testing.assert_allclose(got, want, **CLOSE)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantize(onnx_run: Run, dtype: str) -> None:
    x, scale = 3 * f32(7, 5), np.asarray([0.02, 0.05, 0.01, 0.5, 0.03], "f4")
    zero = np.asarray([0, 3, 1, 2, 9], dtype)
    want = onnx_run("QuantizeLinear", x, scale, zero, axis=1)
    np.testing.assert_array_equal(Quantize(1).reference(x, scale, zero), want)


def test_integer_division_and_remainders(onnx_run: Run) -> None:
    a, b = np.asarray([7, -7, 7, -7, 0]), np.asarray([2, 2, -2, -2, 5])
    for name, fmod in (("Div", None), ("Mod", 0), ("Mod", 1)):
        named = {} if fmod is None else {"fmod": fmod}
        op = OPS["div"]() if fmod is None else OPS["mod"](bool(fmod))
        want = onnx_run(name, a, b, **named)
        np.testing.assert_array_equal(op.reference(a, b), want)
