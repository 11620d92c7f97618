"""Values of images between their elements, at places that tensors give.

An image is ``[C, sizes...]``; places are ``[axes, ...]``, a coordinate a row, in
elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from edgewise.ir.op import Array

KEYS = -0.75  # the cubic coefficient that GridSample fixes


def sampled(
    image: Array,
    places: Array,
    neighbours: Callable[[Array], tuple[Array, Array]],
    pick: Callable[[Array, int, int], tuple[Array, Array]],
) -> Array:
    """The weighted sum of the neighbours of each place.

    Args:
        image: ``[C, sizes...]``.
        places: ``[axes, ...]``.
        neighbours: For coordinates, elements ``[taps, ...]`` and their weights.
        pick: For elements, an axis and its size: elements inside, and whether each
            counts.
    """
    axes = []
    for axis, (size, place) in enumerate(zip(image.shape[1:], places, strict=True)):
        index, weight = neighbours(place)
        axes.append(list(zip(*pick(index, axis, size), weight, strict=True)))
    total = np.zeros((len(image), *places.shape[1:]))
    for taps in itertools.product(*axes):
        seen = image[(slice(None), *(index for index, _, _ in taps))]
        weight = np.prod([weight for _, _, weight in taps], axis=0)
        counts = np.logical_and.reduce([counts for _, counts, _ in taps])
        total += np.where(counts, seen * weight, 0.0)
    return total


def nearest(place: Array) -> tuple[Array, Array]:
    """The one nearest element; halves go to the even one."""
    return np.rint(place)[None], np.ones((1, *place.shape))


def linear(place: Array) -> tuple[Array, Array]:
    """The two elements around."""
    low = np.floor(place)
    share = place - low
    return np.stack([low, low + 1]), np.stack([1 - share, share])


def cubic(place: Array) -> tuple[Array, Array]:
    """The four elements around, by Keys' kernel."""
    low, a = np.floor(place), KEYS
    index = low + np.arange(-1, 3).reshape(-1, *(1,) * place.ndim)
    t = np.abs(index - place)
    inner = ((a + 2) * t - (a + 3)) * t * t + 1
    outer = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return index, np.where(t <= 1, inner, outer)


NEIGHBOURS = {"nearest": nearest, "linear": linear, "cubic": cubic}


def zeros(index: Array, _axis: int, size: int) -> tuple[Array, Array]:
    """Outside lie zeros."""
    inside = (index >= 0) & (index < size)
    return clamped(index, size), inside


def clamped(index: Array, size: int) -> Array:
    """The nearest elements inside; NaN becomes the first."""
    whole = np.nan_to_num(index, nan=0.0)
    return np.asarray(np.clip(whole, 0, max(size - 1, 0)), np.int64)


def reflected(place: Array, low: float, high: float) -> Array:
    """``place`` mirrored at both ends until it lies between them."""
    extent = high - low
    if extent <= 0:
        return np.full_like(place, low)
    turn = np.mod(place - low, 2 * extent)
    return np.asarray(low + np.where(turn > extent, 2 * extent - turn, turn))
