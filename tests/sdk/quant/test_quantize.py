"""Models over bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sdk.quant.conftest import batches

import edgewise as ew
from edgewise.quant.config import METHODS

CLOSE = 0.05  # of the outputs, as vectors: weights have 7 bits, images 8


def outputs(model: ew.Model, x: np.ndarray) -> np.ndarray:
    with ew.Session(model) as session:
        return np.asarray(session(x))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_close_to_the_real_model(
    model: ew.Model, calibration: list[dict[str, np.ndarray]], method: str
) -> None:
    small = ew.quantize(model, calibration, ew.QuantizeConfig(method=method))
    x = batches(1, seed=9)[0]["x"]
    want = outputs(model, x)
    lost = np.linalg.norm(outputs(small, x) - want)
    assert lost <= CLOSE * np.linalg.norm(want)


def test_all_layers_run_on_integer_kernels(
    model: ew.Model, calibration: list[dict[str, np.ndarray]]
) -> None:
    small = ew.quantize(model, calibration)
    with ew.Session(small) as session:
        rows = session.profile(calibration[0], runs=1).rows
    products = [row for row in rows if row.op.startswith("byte_")]
    assert len(products) == 5  # four layers, and the pool between two
    assert all(row.kernel for row in products)
    assert [row.op for row in rows].count("quantize") == 1  # the image


def test_a_file_keeps_what_it_is_made_of(
    model: ew.Model, calibration: list[dict[str, np.ndarray]], tmp_path: Path
) -> None:
    small = ew.quantize(model, calibration)
    small.save(tmp_path / "small.ew")
    again = ew.load(tmp_path / "small.ew")
    x = calibration[0]["x"]
    np.testing.assert_array_equal(outputs(again, x), outputs(small, x))
    assert again.quantization == small.quantization
    names = [layer.name for layer in again.quantization.layers]
    assert names == ["w1", "w2", "w3", "w4"]
    assert model.quantization is None
    weight = again.parameters()["w1"]
    assert weight.dtype == np.int8
    assert weight.shape == (24, 3, 3, 3)


def test_layers_that_are_kept_stay_real(
    model: ew.Model, calibration: list[dict[str, np.ndarray]]
) -> None:
    config = ew.QuantizeConfig(keep=("*4", "w1"))
    small = ew.quantize(model, calibration, config)
    weights = small.parameters()
    assert weights["w1"].dtype == weights["w4"].dtype == np.float32
    assert weights["w2"].dtype == weights["w3"].dtype == np.int8


def test_weights_of_eight_bits_are_closer(
    model: ew.Model, calibration: list[dict[str, np.ndarray]]
) -> None:
    noise = {}
    for reduced in (True, False):
        config = ew.QuantizeConfig(reduce_range=reduced)
        report = ew.quantize(model, calibration, config).quantization
        noise[reduced] = min(layer.sqnr for layer in report.layers)
    assert noise[False] > noise[True] + 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_data_that_is_not_finite_is_refused(model: ew.Model, bad: float) -> None:
    x = np.full((1, 3, 17, 16), bad, np.float32)
    with pytest.raises(ew.ConfigError, match="not finite"):
        ew.quantize(model, [{"x": x}])


def test_no_data_is_refused(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="no batches"):
        ew.quantize(model, [])


def test_batches_of_nothing_are_refused(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="no examples"):
        ew.quantize(model, [{"x": np.zeros((0, 3, 17, 16), np.float32)}])


@pytest.mark.parametrize("data", [batches(1)[0], batches(1)[0]["x"], "x.npz", 3])
def test_what_is_no_list_of_batches_is_refused(model: ew.Model, data: object) -> None:
    with pytest.raises(ew.ConfigError, match="want batches"):
        ew.quantize(model, data)  # type: ignore[arg-type]


def test_data_that_never_changes_is_said(model: ew.Model) -> None:
    zeros = {"x": np.zeros((4, 3, 17, 16), np.float32)}
    report = ew.quantize(model, [zeros] * 3).quantization
    assert any("never changed: 0" in note for note in report.notes)


def test_little_data_is_said(model: ew.Model) -> None:
    report = ew.quantize(model, batches(1)).quantization
    assert any("1 batch" in note for note in report.notes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": "int2"},
        {"method": "guess"},
        {"max_drop": 0.1},
        {"max_drop": -0.1, "evaluate": len},
        {"max_drop": "a", "evaluate": len},
        {"max_drop": 0.1, "evaluate": 3},
        {"keep": "w*"},
        {"per_channel": "no"},
        {"symmetric": 3},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ew.ConfigError):
        ew.QuantizeConfig(**wrong)  # type: ignore[arg-type]


def test_images_are_filled_up_before_their_channels_move(
    model: ew.Model, calibration: list[dict[str, np.ndarray]]
) -> None:
    """Whole planes, not pixel by pixel."""
    small = ew.quantize(model, calibration)
    ops = [node.op.name for node in small.module.functions["infer"].nodes()]
    assert ops.index("pad") < ops.index("transpose")
    assert ops.count("pad") == 1
