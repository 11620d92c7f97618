"""Which layers stay real so that a score holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import SupportsFloat, TypeVar

from edgewise.errors import ConfigError
from edgewise.model import Model

TRIES = 8  # layers that are given back once it is known how many must stay

T = TypeVar("T")


def real_layers(
    ranked: Callable[[], Sequence[T]], holds: Callable[[Sequence[T]], bool]
) -> list[T]:
    """As few layers as let the score hold, of the first of a ranking.

    How many is found by bisection: all of them is the model as it was, which holds.
    Then those that it holds without are given back, the least sensitive first.

    Args:
        ranked: Ranks the layers, the most sensitive first; called where some must stay.
        holds: Whether the score does with these layers real and the others quantised.
    """
    if holds(()):
        return []
    order = ranked()
    fails, enough = 0, len(order)
    while enough - fails > 1:
        middle = (fails + enough) // 2
        if holds(order[:middle]):
            enough = middle
        else:
            fails = middle
    kept = list(order[:enough])
    # Without the last of them it fails: that was tried.
    for layer in kept[-2 : -2 - TRIES : -1]:
        fewer = [other for other in kept if other is not layer]
        if holds(fewer):
            kept = fewer
    return kept


def in_order(
    layers: Sequence[T], name: Callable[[T], str], order: Sequence[str]
) -> list[T]:
    """Layers in an order that is known; those that it does not name last.

    Raises:
        ConfigError: It names one that is not there.
    """
    places = {key: place for place, key in enumerate(order)}
    if strange := places.keys() - {name(layer) for layer in layers}:
        raise ConfigError(f"order: got {min(strange)!r}; want names of layers' weights")
    return sorted(layers, key=lambda layer: places.get(name(layer), len(places)))


def score_of(evaluate: Callable[[Model], float], model: Model) -> float:
    """What a model scores; NaN counts as less than anything.

    Raises:
        ConfigError: That is no number.
    """
    found = evaluate(model)
    if isinstance(found, SupportsFloat):
        with suppress(TypeError, ValueError):  # arrays have many numbers
            return float(found)
    raise ConfigError(f"evaluate: got {found!r}; want a number, of one model")


def score_to_hold(evaluate: Callable[[Model], float], source: Model) -> float:
    """The score of the source model.

    Raises:
        ConfigError: No score can be held against it.
    """
    score = score_of(evaluate, source)
    if not math.isfinite(score):
        raise ConfigError(
            f"evaluate: got {score!r} for the source model; want a finite score"
        )
    return score
