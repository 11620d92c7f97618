"""How long a call takes: warmed up, repeated, summed up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from edgewise.errors import ConfigError


class Timing(NamedTuple):
    """Seconds of every timed call, in order."""

    seconds: tuple[float, ...]

    @property
    def min(self) -> float:
        """The shortest: what the machine can do when left alone."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Half of the calls took no longer."""
        return self.quantile(0.5)

    @property
    def p90(self) -> float:
        """Nine in ten calls took no longer."""
        return self.quantile(0.9)

    def quantile(self, share: float) -> float:
        """The time that ``share`` of the calls did not exceed, between calls linear."""
        ordered = sorted(self.seconds)
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    def figures(self) -> dict[str, float | int]:
        """For JSON, in milliseconds."""
        return {
            "runs": len(self.seconds),
            "min_ms": self.min * 1e3,
            "median_ms": self.median * 1e3,
            "p90_ms": self.p90 * 1e3,
        }


def measure(
    call: Callable[[], object],
    *,
    runs: int = 50,
    warmup: int = 5,
    after_each: Callable[[], None] | None = None,
) -> Timing:
    """Time ``call``.

    Args:
        call: What is timed; its result is dropped outside the timed part.
        runs: Timed calls.
        warmup: Calls before them that do not count.
        after_each: Called after each timed call, untimed: for progress.
    """
    if runs < 1 or warmup < 0:
        raise ConfigError(f"runs={runs}, warmup={warmup}: want at least 1 and 0")
    for _ in range(warmup):
        call()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        del result
        if after_each:
            after_each()
    return Timing(tuple(seconds))
