"""What the runtime wants of the kernel library; the words it shares with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from edgewise.errors import InternalError

POOL_WORDS = 56
STEP_WORDS = 4

# Words of a pool that the host fills in.
SYSCALL, FUTEX, YIELD, SPINS = 48, 49, 50, 51


class Native(Protocol):
    """A kernel library, loaded."""

    def address(self, symbol: str) -> int:
        """Address of a kernel."""

    @property
    def run(self) -> Callable[[int, int, int, int, int], int]:
        """Does steps ``[first, last)``: 0, or ``step * 256 + status``.

        Takes the pool, the steps, first, last, and how many threads.
        """

    @property
    def work(self) -> Callable[[int, int], int]:
        """Helps every run of a pool, as the worker of a number, until it is stopped."""

    @property
    def stop(self) -> Callable[[int], int]:
        """Sends the workers of a pool home."""


def closed(steps: int, first: int, last: int) -> int:
    """What runs steps in a session that is closed."""
    raise InternalError(f"steps {first} to {last} at {steps}: the session is closed")
