"""The fastest model that keeps a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.sdk.quant.conftest import batches

import edgewise as ew
from edgewise.quant.guard import real_layers

LAYERS = ("w1", "w2", "w3", "w4")


class Score:
    """1 where every layer that must stay real does, less 0.1 for each that does not."""

    def __init__(self, *must: str) -> None:
        self.must, self.calls = must, 0

    def __call__(self, model: ew.Model) -> float:
        self.calls += 1
        weights = model.parameters()
        return 1 - 0.1 * sum(weights[name].dtype == np.int8 for name in self.must)


def guarded(model: ew.Model, score: Score, drop: float) -> ew.Model:
    config = ew.QuantizeConfig(max_drop=drop, evaluate=score)
    return ew.quantize(model, batches(), config)


def real(model: ew.Model) -> set[str]:
    layers = model.quantization.layers
    return {layer.name for layer in layers if layer.precision != "int8"}


def test_a_model_that_keeps_its_score_is_quantised_everywhere(model: ew.Model) -> None:
    score = Score()
    small = guarded(model, score, 0.0)
    assert real(small) == set()
    assert score.calls == 2  # the source, and that


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_costs_the_score_stays_alone(model: ew.Model, name: str) -> None:
    small = guarded(model, Score(name), 0.0)
    assert real(small) == {name}
    assert small.parameters()[name].dtype == np.float32
    costs = [layer.sensitivity for layer in small.quantization.layers]
    assert all(cost > 0 for cost in costs)
    assert "3 of 4 layers over bytes" in small.quantization.notes[-1]
    assert "sensitivity" in str(small.quantization)


def precisions(model: ew.Model) -> dict[str, str]:
    return {layer.name: layer.precision for layer in model.quantization.layers}


def test_layers_that_stay_real_have_weights_in_half_where_the_score_holds(
    model: ew.Model,
) -> None:
    assert precisions(guarded(model, Score("w3"), 0.0))["w3"] == "float16"

    def wary(candidate: ew.Model) -> float:
        report = candidate.quantization
        halves = report is not None and "float16" in precisions(candidate).values()
        return Score("w3")(candidate) - 0.1 * halves

    config = ew.QuantizeConfig(max_drop=0.0, evaluate=wary)
    kept = ew.quantize(model, batches(), config)
    assert precisions(kept)["w3"] == "float32"


def test_what_may_be_lost_may_be_spent(model: ew.Model) -> None:
    assert real(guarded(model, Score("w1", "w3"), 0.25)) == set()
    assert len(real(guarded(model, Score("w1", "w3"), 0.15))) == 1
    assert real(guarded(model, Score("w1", "w3"), 0.05)) == {"w1", "w3"}


def test_where_nothing_holds_the_model_stays_as_it_was(model: ew.Model) -> None:
    small = guarded(model, Score(*LAYERS), 0.0)
    assert real(small) == set(LAYERS)
    x = batches(1, seed=3)[0]
    with ew.Session(model) as before, ew.Session(small) as after:
        np.testing.assert_array_equal(after.run(x)["y"], before.run(x)["y"])


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_a_source_without_a_score_is_refused(model: ew.Model, score: float) -> None:
    config = ew.QuantizeConfig(max_drop=0.1, evaluate=lambda _: score)
    with pytest.raises(ew.ConfigError, match="finite score"):
        ew.quantize(model, batches(), config)


def test_bisection_asks_for_few_scores() -> None:
    asked: list[int] = []

    def holds(kept: Sequence[int]) -> bool:
        asked.append(len(kept))
        return len(kept) >= 13

    assert real_layers(lambda: list(range(100)), holds) == list(range(13))
    assert len(asked) <= 1 + 7 + 8
