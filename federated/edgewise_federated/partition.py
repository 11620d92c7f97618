"""Who has which examples: ways to deal a data set to simulated devices."""

from __future__ import annotations

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array

WANT = "'random', 'labels:SHARDS' or 'dirichlet:ALPHA'"


def dealt(
    labels: Array, devices: int, how: str = "random", seed: int = 0
) -> list[Array]:
    """Rows of the examples of each device; each row is somebody's, once.

    Args:
        labels: Of all examples ``[N]``; whole numbers where they decide.
        devices: How many there are.
        how: ``random``; ``labels:2``, by labels, of which each device sees about as
            many; ``dirichlet:0.3``, the smaller the number the more they differ.
        seed: Decides what is drawn.

    Raises:
        ConfigError: There is no such way, or there are too few examples for it.
    """
    kind, _, text = how.partition(":")
    if kind == "random" and not text:
        return at_random(len(labels), devices, seed)
    if kind == "labels" and text.isdecimal():
        return by_labels(labels, devices, int(text), seed)
    if kind == "dirichlet":
        return by_dirichlet(labels, devices, _number(text), seed)
    raise ConfigError(f"split={how!r}: want {WANT}")


def at_random(count: int, devices: int, seed: int = 0) -> list[Array]:
    """Parts of about one size, drawn at random: devices that are alike."""
    _want_enough(count, devices)
    return list(np.array_split(_draw(seed).permutation(count), devices))


def by_labels(
    labels: Array, devices: int, shards: int = 2, seed: int = 0
) -> list[Array]:
    """Examples sorted by label, cut, and so many of the pieces dealt to each device.

    McMahan et al. (2017): with two pieces most devices see two labels.
    """
    if shards < 1:
        raise ConfigError(f"split: got {shards} shards; want 1 or more")
    _want_enough(len(labels), devices * shards)
    order = np.argsort(_classes(labels), kind="stable")
    pieces = np.array_split(order, devices * shards)
    deal = _draw(seed).permutation(len(pieces)).reshape(devices, shards)
    return [np.concatenate([pieces[piece] for piece in mine]) for mine in deal]


def by_dirichlet(
    labels: Array, devices: int, alpha: float, seed: int = 0
) -> list[Array]:
    """The examples of each label in shares drawn from a Dirichlet distribution.

    Hsu et al. (2019).  Who is left without any gets one of those who have most.
    """
    _want_enough(len(labels), devices)
    if not 0 < alpha < np.inf:
        raise ConfigError(f"split: got alpha={alpha}; want a number above 0")
    draw, names = _draw(seed), _classes(labels)
    parts: list[list[Array]] = [[] for _ in range(devices)]
    for label in np.unique(names):
        rows = draw.permutation(np.flatnonzero(names == label))
        shares = draw.dirichlet(np.full(devices, alpha))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(int)
        for mine, part in zip(parts, np.split(rows, cuts), strict=True):
            mine.append(part)
    hands = [np.concatenate(mine) for mine in parts]
    for index in range(devices):
        if not len(hands[index]):
            most = max(range(devices), key=lambda other: len(hands[other]))
            hands[index], hands[most] = hands[most][:1], hands[most][1:]
    return hands


def _classes(labels: Array) -> Array:
    if labels.dtype.kind not in "iub" or labels.ndim != 1:
        raise ConfigError(
            f"split: got targets {labels.dtype}{list(labels.shape)}; want one whole"
            " number an example, or the split 'random'"
        )
    return labels


def _want_enough(count: int, least: int) -> None:
    if count < least or least < 1:
        raise ConfigError(f"split: got {count} examples; want at least {least}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"split=dirichlet:{text}: want {WANT}") from None


def _draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
