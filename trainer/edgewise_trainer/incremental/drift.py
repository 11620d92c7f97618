"""Drift: when what a model sees is no longer what it was."""

from __future__ import annotations

import math

from edgewise.errors import ConfigError


class DriftDetector:
    """Tells when the mean of a stream of numbers rises: the test of Page (1954).

    The numbers, such as errors or doubts of a model, are measured in standard
    deviations of the stream so far, so that no scale has to be known.

    Args:
        threshold: Sum of deviations at which it tells: higher is later and surer.
        tolerance: Rise of the mean that does not count, in standard deviations.
        warm_up: Numbers before it may tell.

    Attributes:
        drifted: Whether it has told since the last ``reset``.
    """

    def __init__(
        self, threshold: float = 20.0, tolerance: float = 0.25, warm_up: int = 30
    ) -> None:
        if not threshold > 0.0 or not tolerance >= 0.0 or warm_up < 2:
            raise ConfigError(
                f"threshold={threshold!r}, tolerance={tolerance!r}, warm_up="
                f"{warm_up!r}: want above 0, from 0 on, from 2 on"
            )
        self._threshold, self._tolerance = threshold, tolerance
        self._warm_up = warm_up
        self.reset()

    def reset(self) -> None:
        """Forget the stream, as after the model has learned."""
        self._count, self._mean, self._squares = 0, 0.0, 0.0
        self._sum, self.drifted = 0.0, False

    def update(self, value: float) -> bool:
        """One more number; whether the mean has risen."""
        if not math.isfinite(value):
            self.drifted = True
            return True
        if self._count >= self._warm_up:
            # Of at least a little: a stream that was constant may rise as well.
            spread = math.sqrt(self._squares / self._count)
            spread = max(spread, 1e-3 * abs(self._mean), 1e-6)
            rise = (value - self._mean) / spread - self._tolerance
            self._sum = max(0.0, self._sum + rise)
            self.drifted |= self._sum > self._threshold
        self._count += 1
        away = value - self._mean
        self._mean += away / self._count  # Welford (1962)
        self._squares += away * (value - self._mean)
        return self.drifted
