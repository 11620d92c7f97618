"""How updates become one: pure functions of flat updates.

Each takes changes, one a row, and the weights of their devices, and gives the change
of the model; servers with a memory (momentum, Adam, Yogi) are in ``server``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgewise.errors import FederatedError
from edgewise.ir.op import Array

TRIMMED = 0.2  # of the updates, at either end
BAD = 0.2  # of the updates, that krum takes to be wrong


def mean(changes: Array, weights: Array) -> Array:
    """The mean, by weights (McMahan et al., 2017)."""
    total = float(weights.sum())
    if not total > 0:
        raise FederatedError("no update learned from any example: nothing to average")
    return np.asarray(weights / total @ changes)


def median(changes: Array, weights: Array) -> Array:
    """The middle of each coordinate (Yin et al., 2018)."""
    del weights
    return np.asarray(np.median(changes, axis=0))


def trimmed_mean(changes: Array, weights: Array, share: float = TRIMMED) -> Array:
    """The mean of each coordinate without its extremes (Yin et al., 2018)."""
    del weights
    cut = int(share * len(changes))
    ordered = np.sort(changes, axis=0)
    return np.asarray(ordered[cut : len(changes) - cut].mean(0))


def krum(changes: Array, weights: Array, share: float = BAD) -> Array:
    """The mean of those closest to others (Multi-Krum, Blanchard et al., 2017).

    Of ``n`` updates ``n - f`` are taken, by the sum of their distances to the nearest
    ``n - f - 2``; ``f`` are taken to be wrong.
    """
    count = len(changes)
    bad = int(share * count)
    if count < bad + 3:
        return mean(changes, weights)
    squares = np.square(changes).sum(1)
    apart = squares[:, None] + squares - 2 * changes @ changes.T
    np.fill_diagonal(apart, np.inf)
    near = np.sort(apart, axis=1)[:, : count - bad - 2].sum(1)
    chosen = np.argsort(near, kind="stable")[: count - bad]
    return mean(changes[chosen], weights[chosen])


Rule = Callable[[Array, Array], Array]
RULES: dict[str, Rule] = {
    "fedmedian": median,
    "trimmed_mean": trimmed_mean,
    "krum": krum,
}


def rule_of(strategy: str) -> Rule:
    """How a strategy joins updates; by their mean if it says nothing else."""
    return RULES.get(strategy, mean)
