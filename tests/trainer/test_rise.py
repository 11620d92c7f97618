"""What quantising each weight is expected to cost, and guards that go by that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sdk.compress.conftest import network, outputs
from tests.trainer.test_compressed import WEIGHTS, data

import edgewise as ew
from edgewise_trainer import Trainer, loss_rise, losses, optimizers

INT4 = ew.QuantizeConfig(weights="int4", activations="float32")
DIGITS = Path(ew.__file__).parent / "demo_data"


@pytest.fixture(scope="module")
def model() -> ew.Model:
    return ew.convert(network())


def test_it_is_half_the_squares_of_gradients_times_those_of_changes(
    model: ew.Model,
) -> None:
    x, _ = data(5)
    y = outputs(model, x) + np.float32(0.3)
    rises = loss_rise(model, (x, y), INT4, "mse", examples=9)
    assert list(rises.values()) == sorted(rises.values(), reverse=True)
    assert set(rises) == {"w1", "w3", "w4", "w5"}  # no depthwise ones
    squares = dict.fromkeys(rises, 0.0)
    for j in range(5):
        trainer = Trainer(model, "mse", optimizers.SGD(1.0), list(WEIGHTS))
        trainer.step(x[j : j + 1], y[j : j + 1])
        moved = trainer.parameters()
        for key in rises:
            gradient = moved[key].astype(np.float64) - model.parameters()[key]
            squares[key] = squares[key] + np.square(gradient) / 5
    small = ew.quantize(model, None, INT4).parameters()
    for key, rise in rises.items():
        change = small[key].astype(np.float64) - model.parameters()[key]
        want = (squares[key] * np.square(change)).sum() / 2
        np.testing.assert_allclose(rise, want, rtol=2e-3)


@pytest.mark.parametrize("equalize", [False, True])
def test_over_bytes_every_layer_has_one(model: ew.Model, *, equalize: bool) -> None:
    config = ew.QuantizeConfig(equalize=equalize)
    rises = loss_rise(model, data(6), config, losses.CrossEntropy(), examples=6)
    assert set(rises) == set(WEIGHTS)
    assert all(np.isfinite(rise) and rise > 0 for rise in rises.values())


def test_it_tells_which_weights_of_a_trained_network_cost_most() -> None:
    with np.load(DIGITS / "digits.npz") as file:
        x, y = file["images"].astype(np.float32) / 16, file["labels"].astype(np.int64)
    source = ew.convert(DIGITS / "digits.onnx")
    rises = loss_rise(source, (x, y), INT4)
    names = set(rises)

    def loss(keep: set[str]) -> float:
        config = ew.QuantizeConfig(
            weights="int4", activations="float32", keep=tuple(keep)
        )
        logits = outputs(ew.quantize(source, None, config), x).astype(np.float64)
        totals = np.log(np.exp(logits).sum(1))
        return float((totals - logits[np.arange(len(y)), y]).mean())

    found = {name: loss(names - {name}) for name in names}
    # The first two layers cost ten times as much as the others.
    assert set(sorted(found, key=found.__getitem__)[-2:]) == set(list(rises)[:2])


@pytest.mark.parametrize("options", [{}, {"weights": "int4", "activations": "float32"}])
def test_a_guard_lets_layers_stay_real_in_the_order_it_is_given(
    model: ew.Model, options: dict[str, str]
) -> None:
    x, _ = data(8)
    asked = []

    def score(candidate: ew.Model) -> float:
        report = candidate.quantization
        if report is None:
            return 0.0
        real = {row.name for row in report.layers if row.precision == "float32"}
        asked.append(real)
        return 0.0 if "w4" in real else -1.0

    config = ew.QuantizeConfig(
        max_drop=0.0,
        evaluate=score,
        order=("w4", "w1"),
        **options,  # type: ignore[arg-type]  # as above
    )
    small = ew.quantize(model, None if options else [{"x": x}], config)
    assert small.quantization is not None
    kinds = {row.name: row.precision for row in small.quantization.layers}
    assert [name for name, kind in kinds.items() if kind in {"float32", "float16"}] == [
        "w4"
    ]
    assert all("w4" in real for real in asked if real)


def test_an_order_names_layers(model: ew.Model) -> None:
    guard = {"max_drop": 0.0, "evaluate": lambda m: float(m.quantization is None)}
    config = ew.QuantizeConfig(
        weights="int4",
        activations="float32",
        order=("b5",),
        **guard,  # type: ignore[arg-type]  # as above
    )
    with pytest.raises(ew.ConfigError, match="b5"):
        ew.quantize(model, None, config)
    with pytest.raises(ew.ConfigError, match="order"):
        ew.QuantizeConfig(order="w1")  # type: ignore[arg-type]
    with pytest.raises(ew.ConfigError, match="examples"):
        loss_rise(model, data(4), INT4, examples=0)
