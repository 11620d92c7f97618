"""What differential privacy has been spent.

Renyi differential privacy of the Gaussian mechanism over a Poisson sample (Mironov,
Talwar and Zhang, 2019), at whole orders, and its conversion to (epsilon, delta)
(Canonne, Kamath and Steinke, 2020, proposition 12).
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.ir.op import Array

ORDERS = tuple(range(2, 257))


def epsilon(share: float, noise: float, rounds: int, delta: float) -> float:
    """The epsilon of some rounds.

    Args:
        share: Chance that a device is in a round.
        noise: Deviation of the noise, as a multiple of the largest norm.
        rounds: How many.
        delta: The chance that the promise does not hold.
    """
    if not rounds:
        return 0.0
    spent = [rounds * _at_order(share, noise, order) for order in ORDERS]
    bounds = [
        rdp + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        for order, rdp in zip(ORDERS, spent, strict=True)
    ]
    return max(min(bounds), 0.0)


def _at_order(share: float, noise: float, order: int) -> float:
    if share >= 1:
        return order / (2 * noise**2)
    k = np.arange(order + 1)
    terms = (
        _log_binomial(order)
        + (order - k) * math.log1p(-share)
        + k * math.log(share)
        + k * (k - 1) / (2 * noise**2)
    )
    top = terms.max()
    return float((top + math.log(np.exp(terms - top).sum())) / (order - 1))


def _log_binomial(order: int) -> Array:
    logs = [
        math.lgamma(order + 1) - math.lgamma(i + 1) - math.lgamma(order - i + 1)
        for i in range(order + 1)
    ]
    return np.asarray(logs)
