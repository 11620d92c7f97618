"""Ways to deal examples: everyone has some, every example is somebody's, once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewise as ew
from edgewise_federated.partition import by_dirichlet, dealt

LABELS = np.random.default_rng(0).integers(0, 10, 400)
WAYS = ["random", "labels:1", "labels:2", "labels:5", "dirichlet:0.1", "dirichlet:100"]


@pytest.mark.parametrize("how", WAYS)
@given(devices=st.integers(1, 40), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_every_example_is_dealt_once(how: str, devices: int, seed: int) -> None:
    hands = dealt(LABELS, devices, how, seed)
    assert len(hands) == devices
    assert min(map(len, hands)) > 0
    np.testing.assert_array_equal(np.sort(np.concatenate(hands)), np.arange(400))
    again = dealt(LABELS, devices, how, seed)
    assert all(np.array_equal(a, b) for a, b in zip(hands, again, strict=True))


def seen(hands: list[np.ndarray]) -> float:
    """Labels that a device sees, on average."""
    return float(np.mean([len(np.unique(LABELS[rows])) for rows in hands]))


def test_devices_differ_as_asked() -> None:
    sizes = [seen(dealt(LABELS, 20, how)) for how in ("labels:1", "labels:2", "random")]
    assert sizes[0] <= 2
    assert sizes[1] <= 4
    assert sizes[2] > 8
    unlike, alike = (seen(dealt(LABELS, 20, f"dirichlet:{a}")) for a in (0.05, 50))
    assert unlike < 4
    assert alike > 8


def test_shares_are_those_that_were_drawn() -> None:
    """A label's examples follow the proportions of its own draw, to a half."""
    hands = by_dirichlet(np.zeros(10_000, np.int64), 4, 1.0, seed=5)
    draw = np.random.default_rng(5)
    draw.permutation(10_000)
    want = draw.dirichlet(np.ones(4)) * 10_000
    np.testing.assert_allclose([len(rows) for rows in hands], want, atol=1)


def test_who_is_left_without_gets_one() -> None:
    hands = by_dirichlet(np.zeros(30, np.int64), 25, 0.01)
    assert min(map(len, hands)) == 1


@pytest.mark.parametrize(
    ("how", "devices", "message"),
    [
        ("labels", 4, "want 'random'"),
        ("labels:x", 4, "want 'random'"),
        ("labels:0", 4, "want 1 or more"),
        ("random:2", 4, "want 'random'"),
        ("dirichlet:", 4, "want 'random'"),
        ("dirichlet:0", 4, "above 0"),
        ("dirichlet:nan", 4, "above 0"),
        ("random", 401, "at least 401"),
        ("random", 0, "at least 0"),
        ("labels:2", 201, "at least 402"),
        ("dirichlet:1", 401, "at least 401"),
    ],
)
def test_what_cannot_be_dealt_is_refused(how: str, devices: int, message: str) -> None:
    with pytest.raises(ew.ConfigError, match=message):
        dealt(LABELS, devices, how)


@pytest.mark.parametrize("how", ["labels:2", "dirichlet:1"])
def test_labels_are_whole_numbers(how: str) -> None:
    for targets in (LABELS.astype(np.float32), LABELS.reshape(-1, 2)):
        with pytest.raises(ew.ConfigError, match="one whole number"):
            dealt(targets, 4, how)
    assert len(dealt(LABELS.reshape(-1, 2), 4, "random")) == 4
