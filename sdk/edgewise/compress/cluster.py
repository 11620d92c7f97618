"""Weights of few different values, each a number of a few bits in a file."""

from __future__ import annotations

import numpy as np

from edgewise.compress.weights import logical, weights_of, with_weights
from edgewise.errors import ConfigError
from edgewise.ir.module import Coding
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.wanted import want_count

_SWEEPS = 50
MOST = 256  # values: a byte tells them apart


def cluster(model: Model, values: int = 16, *, keep: tuple[str, ...] = ()) -> Model:
    """The model with at most so many different numbers in each weight.

    They are the means of k-means over the weight (Han et al., 2016); zeros of weights
    that were pruned stay zero.  16 values take 4 bits each in a file.  A trainer
    trains the values, and keeps who shares which.

    Args:
        model: Stays as it is.
        values: From 2 to 256; 2, 4, 16 and 256 fill their bits.
        keep: Patterns (as of fnmatch) of the names of weights that stay.

    Raises:
        ConfigError: There cannot be so many values, or the model has no weights.
    """
    want_count("values", values, 2)
    if values > MOST:
        raise ConfigError(f"values: want 2 to {MOST}")
    changes = {}
    for key in weights_of(model, keep):
        weight = logical(model, key)
        pruned = model.module.variables[key].coding is Coding.SPARSE
        changes[key] = _clustered(weight, values, zeros=pruned)
    return with_weights(model, changes, Coding.CODEBOOK)


def _clustered(weight: Array, values: int, *, zeros: bool) -> Array:
    """The weight by the nearest of its means."""
    made = weight.copy()
    kept = weight != 0 if zeros else np.ones(weight.shape, np.bool_)
    count = values - (not kept.all())
    if kept.any():
        means = _means(weight[kept], count)
        made[kept] = means[_nearest(weight[kept], means)]
    return made


def _means(numbers: Array, count: int) -> Array:
    """k-means in one dimension, from even steps over the range (Lloyd, 1982)."""
    different = np.unique(numbers)
    if len(different) <= count:
        return different
    ordered = np.sort(numbers)
    ended = np.append(ordered, 0)  # a start may lie behind the last number
    centres = np.linspace(ordered[0], ordered[-1], count, dtype=np.float64)
    for _ in range(_SWEEPS):
        ends = np.searchsorted(ordered, _borders(centres), side="right")
        starts = np.concatenate([[0], ends])
        sizes = np.diff(starts, append=len(ordered))
        # Where there are none it gives another sum, which nothing reads.
        sums = np.add.reduceat(ended, starts, dtype=np.float64)
        moved = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres)
        if np.array_equal(moved, centres):
            break
        centres = np.sort(moved)
    return centres.astype(numbers.dtype)


def _nearest(numbers: Array, centres: Array) -> Array:
    """Of each number, the place of the nearest of sorted centres."""
    return np.searchsorted(_borders(centres), numbers)


def _borders(centres: Array) -> Array:
    return np.asarray((centres[1:] + centres[:-1]) / 2)
