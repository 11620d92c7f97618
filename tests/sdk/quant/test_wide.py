"""Images of 16 bits: exact sums, and much closer to the model than bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper
from tests.sdk.quant.conftest import network
from tests.sdk.quant.test_between import images
from tests.sdk.quant.test_between import network as branches

import edgewise as ew
from edgewise.quant.grid import WIDE_LEVELS, grid

WIDE = ew.QuantizeConfig(activations="int16", reduce_range=False)
BYTES = ew.QuantizeConfig(reduce_range=False)


def outputs(model: ew.Model, x: np.ndarray) -> np.ndarray:
    with ew.Session(model) as session:
        return np.asarray(session(x))


def lost(model: ew.Model, small: ew.Model, x: np.ndarray) -> float:
    want = outputs(model, x)
    return float(np.linalg.norm(outputs(small, x) - want) / np.linalg.norm(want))


def of_whole_weights() -> ew.Model:
    """A model whose weights lose nothing as bytes, so that images lose all."""
    proto = network()
    for tensor in proto.graph.initializer:
        if not tensor.name.startswith("w"):
            continue
        weight = numpy_helper.to_array(tensor)
        rows = weight.reshape(len(weight), -1)
        scale = np.abs(rows).max(1, keepdims=True) / 127
        whole = (np.rint(rows / scale) * scale).reshape(weight.shape)
        made = numpy_helper.from_array(whole.astype(np.float32), tensor.name)
        tensor.CopyFrom(made)
    return ew.convert(proto)


def test_images_of_16_bits_lose_a_hundredth_of_what_bytes_lose(
    calibration: list[dict[str, np.ndarray]],
) -> None:
    model, x = of_whole_weights(), calibration[0]["x"]
    wide = ew.quantize(model, calibration, WIDE)
    small = ew.quantize(model, calibration, BYTES)
    assert lost(model, wide, x) < 0.01 * lost(model, small, x)
    report = wide.quantization
    assert report is not None
    assert {layer.precision for layer in report.layers} == {"int16"}
    assert "int16 activations" in str(report)


def test_every_product_runs_on_integer_kernels(
    model: ew.Model, calibration: list[dict[str, np.ndarray]], tmp_path: Path
) -> None:
    wide = ew.quantize(model, calibration, WIDE)
    x = calibration[0]["x"]
    with ew.Session(wide) as session:
        rows = session.profile({"x": x}, runs=1).rows
    products = [row for row in rows if row.precision == "int8"]
    assert len(products) == 8  # two a layer
    assert all(row.kernel for row in rows if row.op.startswith("byte_"))
    wide.save(tmp_path / "wide.ew")
    again = ew.load(tmp_path / "wide.ew")
    np.testing.assert_array_equal(outputs(again, x), outputs(wide, x))
    bytes_ = ew.quantize(model, calibration, BYTES)
    bytes_.save(tmp_path / "bytes.ew")
    sizes = [(tmp_path / f"{name}.ew").stat().st_size for name in ("wide", "bytes")]
    assert sizes[0] < 1.25 * sizes[1]


def test_another_engine_gives_the_same(
    model: ew.Model, calibration: list[dict[str, np.ndarray]]
) -> None:
    wide = ew.quantize(model, calibration, WIDE)
    x = calibration[0]["x"]
    proto = wide.to_onnx()
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (want,) = session.run(None, {"x": x})
    got = outputs(wide, x)
    # A sum on the edge between two of 65,536 numbers may fall to either.
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("symmetric", [False, True])
def test_ranges_have_16_bits(symmetric: bool) -> None:
    found = grid(-1.0, 3.0, symmetric=symmetric, levels=WIDE_LEVELS)
    x = np.linspace(-1, 3, 1001)
    steps = np.clip(np.rint(x / found.scale) + found.zero, 0, WIDE_LEVELS)
    assert np.abs((steps - found.zero) * found.scale - x).max() <= 1e-4
    assert (0 - found.zero) * found.scale <= -0.999


def test_a_guard_works_here_too(
    model: ew.Model, calibration: list[dict[str, np.ndarray]]
) -> None:
    x = calibration[0]["x"]
    want = outputs(model, x)

    def closeness(candidate: ew.Model) -> float:
        return -float(np.linalg.norm(outputs(candidate, x) - want))

    worst = -closeness(ew.quantize(model, calibration, WIDE))
    guard = ew.QuantizeConfig(
        activations="int16", max_drop=0.5 * worst, evaluate=closeness
    )
    small = ew.quantize(model, calibration, guard)
    assert closeness(small) >= -0.5 * worst
    assert small.quantization is not None
    kinds = {layer.precision for layer in small.quantization.layers}
    assert "int16" in kinds or "float32" in kinds


def test_a_layer_with_a_residual_and_an_odd_number_of_channels() -> None:
    model = ew.convert(branches())
    data = [{"x": images(seed)} for seed in range(3)]
    wide = ew.quantize(model, data, WIDE)
    assert lost(model, wide, images(9)) < 0.03
