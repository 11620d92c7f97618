"""Layers that read signs: trained as real ones, and counted as bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.sdk.compress.conftest import network, outputs

import edgewise as ew
from edgewise import compress
from edgewise_trainer import Trainer, optimizers

CLOSE = 2e-6  # of the largest sum: an order of adding, and one product more


def chain() -> onnx.ModelProto:
    """Convolutions with batch norms and pools, odd channels, and linear layers."""
    rng = np.random.default_rng(0)
    shapes = {
        "w1": (20, 3, 3, 3),
        "w2": (35, 20, 3, 3),
        "w3": (33, 35, 1, 1),
        "w4": (33 * 12, 40),
        "b4": (40,),
        "w5": (7, 40),
        **{f"n{i}": (35,) for i in range(3)},
    }
    arrays = {k: rng.normal(0, 0.3, s).astype(np.float32) for k, s in shapes.items()}
    arrays["n3"] = rng.uniform(0.5, 2, 35).astype(np.float32)
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[2, 1, 0, 1], strides=[2, 1]),
        node("BatchNormalization", ["c", "n0", "n1", "n2", "n3"], ["d"]),
        node("Relu", ["d"], ["e"]),
        node("MaxPool", ["e"], ["f"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["f", "w3"], ["g"]),
        node("Flatten", ["g"], ["h"]),
        node("Gemm", ["h", "w4", "b4"], ["i"]),
        node("Relu", ["i"], ["j"]),
        node("Gemm", ["j", "w5"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 13, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 7])
    held = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "chain", [x], [y], held)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.fixture(scope="module")
def signed() -> ew.Model:
    """Its layers but the first read signs."""
    return compress.binarize(ew.convert(chain()), activations=True)


def images(count: int = 5) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.standard_normal((count, 3, 13, 8)).astype(np.float32)


def kernels(model: ew.Model, x: np.ndarray) -> list[str]:
    with ew.Session(model) as session:
        return [row.kernel for row in session.profile({"x": x}, runs=1).rows]


def sign(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, 1.0, -1.0)


def test_signs_are_taken_of_sums_and_pads_are_positive(signed: ew.Model) -> None:
    """Against numpy, in double precision."""
    x, held = images(), ew.convert(chain()).parameters()
    w = {key: array.astype(np.float64) for key, array in held.items()}
    for key in ("w2", "w3", "w4", "w5"):
        others = {"w4": (0,), "w5": (1,)}.get(key, (1, 2, 3))
        size = np.abs(w[key]).mean(others, keepdims=True)
        w[key] = np.where(w[key] < 0, -size, size)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    a = sums(padded, w["w1"], 1)
    b = np.pad(sign(a), ((0, 0), (0, 0), (2, 0), (1, 1)), constant_values=1.0)
    c = sums(b, w["w2"], 2)
    n = [np.asarray(signed.module.variables[f"n{i}"].initial) for i in range(4)]
    scale = n[0] / np.sqrt(n[3].astype(np.float64) + 1e-5)
    d = (c - n[2][:, None, None]) * scale[:, None, None] + n[1][:, None, None]
    height, width = (size // 2 * 2 for size in d.shape[2:])
    f = d[:, :, :height, :width].reshape(5, 35, height // 2, 2, width // 2, 2)
    g = sums(sign(f.max((3, 5))), w["w3"], 1)
    i = sign(g.reshape(5, -1)) @ w["w4"] + w["b4"]
    want = sign(i) @ w["w5"].T
    np.testing.assert_allclose(outputs(signed, x), want, rtol=1e-4, atol=1e-4)


def sums(x: np.ndarray, w: np.ndarray, down: int) -> np.ndarray:
    size = w.shape[2:]
    seen = np.lib.stride_tricks.sliding_window_view(x, size, axis=(2, 3))
    return np.einsum("nchwrs,ocrs->nohw", seen[:, :, ::down], w)


def test_products_of_bits_give_the_same(signed: ew.Model, tmp_path: Path) -> None:
    packed = compress.pack_binary(signed)
    for count in (1, 5, 40):
        x = images(count)
        want = outputs(signed, x)
        got = outputs(packed, x)
        np.testing.assert_allclose(got, want, atol=CLOSE * np.abs(want).max(), rtol=0)
    used = kernels(packed, images())
    assert sum(name in {"conv_bits", "product_bits"} for name in used) == 4
    packed.save(tmp_path / "bits.ew")
    signed.save(tmp_path / "signs.ew")
    again = ew.load(tmp_path / "bits.ew")
    np.testing.assert_array_equal(outputs(again, images()), outputs(packed, images()))
    sizes = [(tmp_path / f"{name}.ew").stat().st_size for name in ("bits", "signs")]
    assert sizes[0] < 1.2 * sizes[1]
    assert packed.parameters()["w2"].dtype == np.int32


def test_signs_are_trained_and_stay_signs(signed: ew.Model) -> None:
    x, y = images(8), np.arange(8) % 7
    trainer = Trainer(signed, optimizer=optimizers.AdamW(2e-2))
    first = trainer.step(x, y)
    trainer.fit((x, y), epochs=30, batch_size=8)
    made = trainer.export()
    assert trainer.step(x, y) < 0.7 * first
    want = outputs(made, x)
    got = outputs(compress.pack_binary(made), x)
    np.testing.assert_allclose(got, want, atol=CLOSE * np.abs(want).max(), rtol=0)


def test_what_is_never_below_zero_is_read_as_it_is() -> None:
    """A ReLU that something else reads stays, and so does who reads it."""
    model = ew.convert(network())
    made = compress.pack_binary(compress.binarize(model, activations=True))
    x = np.random.default_rng(0).standard_normal((2, 3, 13, 16)).astype(np.float32)
    used = kernels(made, x)
    # w5 reads sums of w4; w3 what a depthwise layer and a concat share, w4 the concat.
    assert sum(name in {"conv_bits", "product_bits"} for name in used) == 1


def test_where_nothing_reads_signs_that_is_said() -> None:
    model = ew.convert(network())
    with pytest.raises(ew.ConfigError, match="activations=True"):
        compress.pack_binary(compress.binarize(model))
    with pytest.raises(ew.ConfigError, match="read sums"):
        compress.binarize(model, keep=("w1", "w2", "w5"), activations=True)
