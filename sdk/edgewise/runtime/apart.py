"""Keeps workers off the processor of the thread that runs steps.

On few processors the system wakes a worker where the thread is that woke it, rather
than look for an idle one.  The two then take turns on one processor: the worker spins
while the caller waits, and a run takes longer than by one thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from threading import Thread

# Of more processors the system finds an idle one, and moving many workers costs.
FEW = 8
UNKNOWN = -1
# The interpreter's lock stays held: the call is shorter than taking it again.
_processor = ctypes.PyDLL(None).sched_getcpu


class Apart:
    """Where the workers of a pool may run.

    Args:
        cpus: Processors they were given; empty: those of the thread that hires them.
    """

    __slots__ = ("_allowed", "_cpus", "_given", "_left")

    def __init__(self, cpus: tuple[int, ...]) -> None:
        self._cpus = self._allowed = frozenset(cpus)
        self._left, self._given = UNKNOWN, 0

    def keep(self, workers: Sequence[Thread]) -> None:
        """Let workers run anywhere but where this thread is now.

        They may run there too where they need it, or where there are many others.
        """
        here, count = _processor(), len(workers)
        if here == self._left and count == self._given:
            return
        self._left = UNKNOWN  # an interrupt may end this half done
        if count != self._given:
            self._allowed = self._cpus or frozenset(os.sched_getaffinity(0))
        few = count < len(self._allowed) <= FEW
        if few or count != self._given:
            for worker in workers:
                _place(worker, self._allowed - {here} if few else self._allowed)
        self._left, self._given = here, count


def _place(worker: Thread, cpus: frozenset[int]) -> None:
    if worker.native_id is None:
        return
    try:
        os.sched_setaffinity(worker.native_id, cpus)
    except OSError as error:
        import logging  # noqa: PLC0415 - 5 ms that a run need not pay

        # A sandbox may forbid it: then the system places them as it likes.
        logger = logging.getLogger(__name__)
        logger.debug("worker %s stays where it may be: %s", worker.name, error)
