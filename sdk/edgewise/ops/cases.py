"""Arrays that samples are made of: seeded, small, and telling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from edgewise.ir.op import Array

SHAPES = ((0,), (1,), (7,), (17,), (33,), (), (3, 5), (2, 1, 3), (2, 3, 4, 5))
PAIRS = (
    ((7,), (7,)),
    ((17,), (1,)),
    ((1,), (33,)),
    ((), (5,)),
    ((3, 5), (5,)),
    ((3, 1), (1, 17)),
    ((4,), (2, 3, 4)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((0, 3), (1, 3)),
)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3.4e38, -3.4e38)
USUAL = (-100.0, -20.0, -5.0, -1.0, -0.5, 0.5, 1.0, 1.5, 2.5, 5.0, 20.0, 100.0)


def floats(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Normal numbers."""
    generator = np.random.default_rng(seed + 31 * len(shape) + sum(shape))
    return np.asarray(generator.standard_normal(shape), dtype)


def positive(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Numbers from 0.5 to 2."""
    generator = np.random.default_rng(seed + 17 * len(shape) + sum(shape))
    return np.asarray(generator.uniform(0.5, 2.0, shape), dtype)


def whole(
    *shape: int, dtype: str = "int64", low: int = -9, high: int = 10, seed: int = 0
) -> Array:
    """Integers from ``low`` (0 where unsigned) up to but without ``high``."""
    generator = np.random.default_rng(seed + 13 * len(shape) + sum(shape))
    low = max(low, 0) if dtype.startswith("u") else low
    return np.asarray(generator.integers(low, high, shape), dtype)


def bools(*shape: int, seed: int = 0) -> Array:
    """Truth values."""
    return np.asarray(np.random.default_rng(seed).integers(0, 2, shape), bool)


def special(dtype: str = "float32") -> Array:
    """NaN, infinities, zeros, denormals, the largest numbers, and usual ones."""
    with np.errstate(all="ignore"):
        return np.asarray(SPECIAL + USUAL).astype(dtype)


def special_pairs(dtype: str = "float32") -> tuple[Array, Array]:
    """Every pair of telling floats."""
    values = special(dtype)[[0, 1, 2, 3, 4, 5, 7, 9, 13, 15, 18]]
    left, right = zip(*itertools.product(values, values), strict=True)
    return np.asarray(left, dtype), np.asarray(right, dtype)


def extremes(dtype: str) -> Array:
    """The ends of an integer type and what lies about zero."""
    info = np.iinfo(dtype)
    low = (info.min, info.min + 1, -1) if info.min else (0,)
    return np.asarray((*low, 0, 1, 2, info.max - 1, info.max), dtype)


def arrays(dtype: str) -> Iterator[Array]:
    """One array of every shape in ``SHAPES``."""
    kind = np.dtype(dtype).kind
    for shape in SHAPES:
        if kind == "b":
            yield bools(*shape)
        else:
            yield (
                floats(*shape, dtype=dtype)
                if kind == "f"
                else whole(*shape, dtype=dtype)
            )
