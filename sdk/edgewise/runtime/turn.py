"""Whose turn it is to run a session, over forks and until the interpreter ends."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager


class Turn:
    """Whose turn it is to run; outlives the session, so that an end can wait for it."""

    __slots__ = ("__weakref__", "lock", "owner")

    def __init__(self) -> None:
        self.renew()
        _turns.add(self)

    def renew(self) -> None:
        """Forget who has the turn: in a forked child that thread does not exist."""
        self.lock: AbstractContextManager[object] = threading.Lock()
        self.owner = 0

    def end(self) -> None:
        """Wait for the last run, and let no thread begin another.

        At the interpreter's exit a daemon thread may be inside one, and all memory is
        about to go.
        """
        self.lock.__enter__()  # taken, never to be given back
        self.lock = _Over()


class _Over:
    """The lock of a session whose interpreter is ending."""

    def __enter__(self) -> None:
        """Pass the main thread, which is in an exit handler; hold all others."""
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait()

    def __exit__(self, *error: object) -> None:
        """Nothing was taken."""


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


def _after_fork() -> None:
    """A thread that held a lock is not there to give it back."""
    for turn in list(_turns):
        turn.renew()


os.register_at_fork(after_in_child=_after_fork)
