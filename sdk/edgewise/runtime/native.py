"""What the runtime wants of the kernel library; the words it shares with it."""

from __future__ import annotations

from typing import Protocol

POOL_WORDS = 56
STEP_WORDS = 4

# Words of a pool that the host fills in.
SYSCALL, FUTEX, YIELD, SPINS = 48, 49, 50, 51


class Native(Protocol):
    """A kernel library, loaded."""

    def address(self, symbol: str) -> int:
        """Address of a kernel."""

    def run(self, pool: int, steps: int, first: int, last: int, threads: int) -> int:
        """Do steps ``[first, last)``; 0, or ``step * 256 + status``."""

    def work(self, pool: int, worker: int) -> int:
        """Help every run of the pool until it is stopped."""

    def stop(self, pool: int) -> int:
        """Send the workers of a pool home."""
