"""Rules that join updates, servers with a memory, and what privacy costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgewise.errors import ConfigError, FederatedError
from edgewise_federated.accountant import epsilon
from edgewise_federated.aggregate import krum, mean, median, trimmed_mean
from edgewise_federated.server import Server

RNG = np.random.default_rng(0)


def test_the_mean_weighs_by_examples() -> None:
    changes = RNG.normal(size=(3, 4))
    want = (changes[0] + 3 * changes[2]) / 4
    np.testing.assert_allclose(mean(changes, np.asarray([1.0, 0.0, 3.0])), want)
    with pytest.raises(FederatedError, match="nothing to average"):
        mean(changes, np.zeros(3))


@pytest.mark.parametrize("rule", [median, trimmed_mean, krum])
def test_robust_rules_shrug_at_a_fifth_of_liars(rule: object) -> None:
    honest = RNG.normal(1.0, 0.1, (8, 50))
    liars = np.full((2, 50), -1e6)
    joined = rule(np.concatenate([honest, liars]), np.ones(10))  # type: ignore[operator]
    np.testing.assert_allclose(joined, 1.0, atol=0.2)


def test_krum_of_few_is_their_mean() -> None:
    changes = RNG.normal(size=(2, 5))
    np.testing.assert_allclose(krum(changes, np.ones(2)), changes.mean(0))


def test_a_trimmed_mean_drops_as_many_at_either_end() -> None:
    changes = np.asarray([[-100.0], [1.0], [2.0], [3.0], [900.0]])
    assert trimmed_mean(changes, np.ones(5)) == [2.0]


def test_adam_on_the_server_steps_as_the_paper_says() -> None:
    start = np.asarray([1.0, -2.0], np.float32)
    server = Server("fedadam", start, {"server_lr": 0.5})
    moment, second, values = np.zeros(2), np.zeros(2), start.astype(np.float64)
    for change in (np.asarray([0.1, -0.3]), np.asarray([0.2, 0.1])):
        server.apply(change)
        moment = 0.9 * moment + 0.1 * change
        second = 0.99 * second + 0.01 * change**2
        values = values + 0.5 * moment / (np.sqrt(second) + 1e-3)
    np.testing.assert_allclose(server.values, values, rtol=1e-5)


def test_yogi_differs_where_changes_shrink() -> None:
    servers = {name: Server(name, np.zeros(1), None) for name in ("fedadam", "fedyogi")}
    for size in (1.0, 0.1):
        for server in servers.values():
            server.apply(np.asarray([size]))
    want = 0.01 - 0.01 * 0.1**2 * np.sign(0.01 - 0.1**2)
    assert servers["fedyogi"].memory["second"][0] == pytest.approx(want, rel=1e-5)
    assert servers["fedadam"].memory["second"][0] == pytest.approx(0.01, rel=1e-5)


def test_options_that_a_strategy_lacks_are_refused() -> None:
    with pytest.raises(ConfigError, match="fedavg has no mu"):
        Server("fedavg", np.zeros(1), {"mu": 1.0})


def test_epsilon_of_many_sampled_rounds() -> None:
    """As other accountants by Renyi divergences at whole orders have it."""
    assert epsilon(0.1, 2.0, 100, 1e-5) == pytest.approx(2.587, rel=0.005)


@pytest.mark.parametrize("noise", [1.0, 4.0, 20.0])
def test_epsilon_of_one_release_lies_between_the_exact_and_the_classic(
    noise: float,
) -> None:
    found, delta = epsilon(1.0, noise, 1, 1e-5), 1e-5

    def below(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    # The exact trade-off of the Gaussian mechanism (Balle and Wang, 2018, theorem 8).
    half = 1 / (2 * noise)
    exact = below(half - found * noise) - math.exp(found) * below(-half - found * noise)
    assert exact <= delta
    assert found <= math.sqrt(2 * math.log(1.25 / delta)) / noise


def test_epsilon_grows_with_rounds_and_falls_with_noise() -> None:
    assert epsilon(0.1, 1.0, 0, 1e-5) == 0
    assert epsilon(0.1, 1.0, 10, 1e-5) < epsilon(0.1, 1.0, 20, 1e-5)
    assert epsilon(0.1, 2.0, 10, 1e-5) < epsilon(0.1, 1.0, 10, 1e-5)
