"""Training around weights that are stored in few bits."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sdk.quant.conftest import network

import edgewise as ew
from edgewise_trainer import Trainer, optimizers

NARROW, FREE = ("w1", "w3", "w4"), ("b1", "w2", "b4")


@pytest.fixture(params=["float16", "int8", "int4"])
def model(request: pytest.FixtureRequest) -> ew.Model:
    config = ew.QuantizeConfig(weights=request.param, activations="float32")
    return ew.quantize(ew.convert(network()), None, config)


def test_the_rest_is_trained_and_they_stay(model: ew.Model) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 3, 17, 16)).astype(np.float32)
    y = rng.integers(0, 10, 8)
    trainer = Trainer(model, loss="cross_entropy", optimizer=optimizers.SGD(0.05))
    losses = [trainer.step({"x": x}, y) for _ in range(20)]
    assert losses[-1] < losses[0]
    made = trainer.export()
    before, after = model.parameters(), made.parameters()
    for name in NARROW:
        np.testing.assert_array_equal(after[name], before[name])
        assert made.module.variables[name].type == model.module.variables[name].type
    for name in FREE:
        assert np.abs(after[name] - before[name]).max() > 0


def test_to_train_one_is_refused_by_its_name(model: ew.Model) -> None:
    with pytest.raises(ew.ConfigError, match="'w3' is stored in few bits"):
        Trainer(
            model,
            loss="cross_entropy",
            optimizer=optimizers.SGD(0.05),
            trainable=["w3"],
        )
