"""Codecs: what they lose, how small they are, and what feedback gives back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.errors import ConfigError
from edgewise_federated.codecs import Feedback, codec, received

NAMES = ("float32", "float16", "int8", "int4", "topk:0.1", "topk:1")
BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.07, "int4": 0.57, "topk:0.1": 0.81}


def draw() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", NAMES)
@given(size=st.integers(1, 300), seed=st.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_what_arrives_has_the_size_and_is_near(name: str, size: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(0, 3, size).astype(np.float32)
    way = codec(name)
    got = way.decode(way.encode(values, draw()), size)
    assert got.shape == values.shape
    assert got.dtype == np.float32
    if way.exact:
        np.testing.assert_array_equal(got, values)
    steps = {"float16": 2e-3, "int8": 1 / 127, "int4": 1 / 7}.get(name)
    if steps:
        assert np.abs(got - values).max() <= steps * np.abs(values).max() + 1e-6
    if name == "topk:0.1":
        kept = max(round(0.1 * size), 1)
        assert np.count_nonzero(got) <= kept
        assert np.abs(got).max() == np.abs(values).max()


@pytest.mark.parametrize(("name", "each"), BYTES.items())
def test_so_many_bytes_a_number(name: str, each: float) -> None:
    values = np.random.default_rng(0).normal(size=6400).astype(np.float32)
    assert len(codec(name).encode(values, draw())) <= each * values.size


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_rounding_by_chance_is_right_on_average(name: str) -> None:
    values = np.asarray([1.0, 0.3, -0.123, 0.0, 1e-4], np.float32)
    way, rng = codec(name), draw()
    many = [way.decode(way.encode(values, rng), 5) for _ in range(4000)]
    np.testing.assert_allclose(np.mean(many, axis=0), values, atol=0.01)


@pytest.mark.parametrize("name", ["float16", "int8", "int4", "topk:0.1"])
def test_feedback_sends_in_the_end_what_was_lost(name: str) -> None:
    """The sum of what arrived is that of what was sent, but for what waits."""
    rng, feedback = draw(), Feedback(codec(name))
    sent = arrived = np.zeros(200, np.float32)
    for _ in range(40):
        values = rng.normal(0, 1, 200).astype(np.float32)
        sent = sent + values
        arrived = arrived + received(feedback.send(values, rng))
    assert feedback.lost is not None
    np.testing.assert_allclose(arrived + feedback.lost, sent, atol=2e-4)


@pytest.mark.parametrize("values", [np.zeros(70), np.full(70, 3e38), np.full(3, 1e-42)])
@pytest.mark.parametrize("name", NAMES)
def test_extremes_stay_finite(name: str, values: np.ndarray) -> None:
    way = codec(name)
    got = way.decode(way.encode(values.astype(np.float32), draw()), values.size)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("name", ["zip", "topk", "topk:", "topk:0", "topk:2", "int2"])
def test_no_such_codec(name: str) -> None:
    with pytest.raises(ConfigError, match="want float32"):
        codec(name)
