"""The range that a value gets, by what was seen of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from edgewise.ir.graph import Value
from edgewise.ir.op import Array
from edgewise.quant.grid import LEVELS, grid
from edgewise.quant.observe import Seen

Range = tuple[float, float]
OUTSIDE = 5e-5  # of all numbers, at either end, in ``percentile``
# Ranges that are tried, as shares of the whole: from all of it to a 4,096th.
SHARES = 2.0 ** (-np.arange(97) / 8)
BINS = 8 * (LEVELS + 1)
NARROW = 0.25  # of a range: two bits
_SWEEPS = 30


def minmax(seen: Seen) -> Range:
    """All that was seen."""
    return seen.low, seen.high


def moving_average(seen: Seen) -> Range:
    """The ends of batches, averaged."""
    return seen.average


def percentile(seen: Seen) -> Range:
    """All but one number in 10,000."""
    low, high = np.quantile(seen.sample, (OUTSIDE, 1 - OUTSIDE), method="nearest")
    return float(low), float(high)


def _best(seen: Seen, cost: Callable[[Array, Range], float]) -> Range:
    """The share of the whole range that costs least."""
    sample = seen.sample
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)
    ranges = [(low * float(share), high * float(share)) for share in SHARES]
    return min(ranges, key=lambda ends: cost(sample, ends))


def mse(seen: Seen) -> Range:
    """The smallest mean square of what rounding and clipping change."""

    def cost(sample: Array, ends: Range) -> float:
        difference = grid(*ends).rounded(sample) - sample
        return float(np.mean(np.square(difference, dtype=np.float64)))

    return _best(seen, cost)


def entropy(seen: Seen) -> Range:
    """The smallest divergence of the rounded numbers from the real ones.

    Kullback and Leibler's, of histograms: each level spreads its numbers over those of
    its bins that had any (Migacz, 2017).
    """
    return _best(seen, _divergence)


def _divergence(sample: Array, ends: Range) -> float:
    low, high = ends
    if high <= low:
        return np.inf
    places = (sample - low) / (high - low) * BINS
    inside = (places >= 0) & (places <= BINS)
    held = np.clip(places, 0, BINS - 1).astype(np.int64)
    p = np.bincount(held, minlength=BINS).astype(np.float64)
    kept = np.bincount(held[inside], minlength=BINS).reshape(LEVELS + 1, -1)
    used = kept > 0
    share = kept.sum(1) / np.maximum(used.sum(1), 1)
    q = (used * share[:, None]).reshape(-1)
    there = p > 0
    if not kept.any():
        return np.inf
    # Where only what was clipped lies, q is 0: a small number stands for it.
    ratio = p[there] / np.maximum(q[there], 1e-3) * (q.sum() / p.sum())
    return float((p[there] * np.log(ratio)).sum() / p.sum())


def admm(seen: Seen) -> Range:
    """Levels and scale in turn, each the best for the other."""
    sample = seen.sample.astype(np.float64)
    found = grid(*mse(seen))
    scale, zero = found.scale, found.zero
    for _ in range(_SWEEPS):
        levels = np.clip(np.rint(sample / scale) + zero, 0, LEVELS) - zero
        square = float(np.dot(levels, levels))
        if not square:
            break
        scale = float(np.dot(sample, levels)) / square
    return -zero * scale, (LEVELS - zero) * scale


METHODS: dict[str, Callable[[Seen], Range]] = {
    method.__name__: method
    for method in (minmax, moving_average, percentile, entropy, mse, admm)
}


def shared(
    ranges: Mapping[Value, Range], made: Value, moved: Collection[Value]
) -> dict[Value, Range]:
    """One range for what a move gives and is given.

    Where several values are put together, one that is much narrower keeps its own: it
    is made bytes anew, for it would lose bits on its way elsewhere.
    """
    group = [value for value in (made, *moved) if value in ranges]
    low = min(ranges[value][0] for value in group)
    high = max(ranges[value][1] for value in group)
    least = NARROW * (high - low) if len(moved) > 1 else 0.0
    wide = [v for v in group if v == made or ranges[v][1] - ranges[v][0] >= least]
    return dict.fromkeys(wide, (low, high))
