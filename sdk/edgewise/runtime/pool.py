"""Worker threads: the one place of the process that owns any.

There is one pool for each set of CPUs, as large as the largest session asks for.  A
worker is a Python thread inside one native call, without the interpreter's lock, which
spins and then sleeps until a run opens a step.  A run does not wait for the pool: where
another session is using it, the caller does all the work itself.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref

from edgewise.errors import InternalError
from edgewise.runtime import topology
from edgewise.runtime.apart import Apart
from edgewise.runtime.executable import RunSteps
from edgewise.runtime.memory import address, words
from edgewise.runtime.native import (
    FUTEX,
    POOL_WORDS,
    SPINS,
    SYSCALL,
    YIELD,
    Native,
)

# Numbers of futex and sched_yield.
SYSTEM_CALLS = {"x86_64": (202, 24), "aarch64": (98, 124)}
# Pauses before an idle worker sleeps: some 50 us, longer than the gap between the steps
# of a run, shorter than that between most runs, so that an idle process is idle.
IDLE_SPINS = 2000


class _Crew:
    """The part of a pool that threads and finalizers may hold."""

    __slots__ = ("address", "apart", "cpus", "lock", "native", "threads", "words")

    def __init__(self, native: Native, cpus: tuple[int, ...]) -> None:
        self.native, self.cpus = native, cpus
        self.renew()

    def renew(self) -> None:
        """Begin without threads: at first, and in a forked child, which has none."""
        self.lock = threading.Lock()
        self.threads: list[threading.Thread] = []
        self.apart = Apart(self.cpus)
        self.words = words(POOL_WORDS)
        self.address = address(self.words)
        machine = os.uname().machine
        if machine not in SYSTEM_CALLS:
            raise InternalError(f"no system call numbers are known for {machine}")
        self.words[SYSCALL] = ctypes.cast(
            ctypes.CDLL(None).syscall, ctypes.c_void_p
        ).value
        self.words[FUTEX], self.words[YIELD] = SYSTEM_CALLS[machine]
        self.words[SPINS] = IDLE_SPINS

    def dismiss(self) -> None:
        """Stop and join the workers; before that, their words must not be freed.

        A run that another thread is in ends first, as the lock is held during runs. It
        stays held: at the interpreter's exit a later run finds the pool busy, for good.
        """
        self.lock.acquire()
        self.native.stop(self.address)
        for thread in self.threads:
            # A collection may happen to run in a worker that is only just starting; and
            # an interrupt may have come before one was started.
            if thread.ident and thread is not threading.current_thread():
                thread.join()
        self.threads.clear()


class Pool:
    """Threads that help runs on one set of CPUs.

    Args:
        native: The kernel library.
        cpus: CPUs the workers stay on; empty: the system places them.
    """

    def __init__(self, native: Native, cpus: tuple[int, ...]) -> None:
        self._native, self._crew = native, _Crew(native, cpus)
        weakref.finalize(self, self._crew.dismiss)

    def run(self, steps: int, first: int, last: int, threads: int) -> int:
        """Do steps with at most ``threads`` threads, the calling one included."""
        crew = self._crew
        # Not a try to take the lock: an interrupt between that and the run would leave
        # it taken for ever, which `with` rules out.  Who loses the race waits one run.
        if threads > 1 and not crew.lock.locked():
            with crew.lock:
                if len(crew.threads) < threads - 1:
                    self._hire(threads - 1)
                crew.apart.keep(crew.threads)
                return self._native.run(crew.address, steps, first, last, threads)
        return self._native.run(0, steps, first, last, 1)

    def renew(self) -> None:
        """Forget the threads, which a fork has left behind."""
        self._crew.renew()

    def _hire(self, count: int) -> None:
        crew = self._crew
        for worker in range(len(crew.threads) + 1, count + 1):
            thread = threading.Thread(
                target=_live,
                args=(crew, worker),
                name=f"edgewise-{worker}",
                daemon=True,
            )
            # Noted first: an interrupt must not lead to two workers of one number.
            crew.threads.append(thread)
            try:
                thread.start()
            except RuntimeError as error:
                crew.threads.remove(thread)
                _log_refusal(worker, error)
                return


def _log_refusal(worker: int, error: RuntimeError) -> None:
    """The system gives no more threads; a run needs none but its own."""
    import logging  # noqa: PLC0415 - 5 ms that a run with its threads need not pay

    logging.getLogger(__name__).warning("no thread for worker %d: %s", worker, error)


def _live(crew: _Crew, worker: int) -> None:
    crew.native.work(crew.address, worker)


_pools: weakref.WeakValueDictionary[tuple[int, tuple[int, ...]], Pool] = (
    weakref.WeakValueDictionary()
)
_sharing = threading.Lock()


def shared(native: Native, cpus: tuple[int, ...]) -> Pool:
    """The process's pool for a set of CPUs; it ends when no session holds it."""
    key = id(native), tuple(sorted(cpus))
    with _sharing:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = Pool(native, key[1])
        return pool


def team(
    native: Native, threads: int | None, cores: str | tuple[int, ...]
) -> tuple[int, RunSteps]:
    """How many threads a session has, and what runs its steps on them.

    Args:
        native: The kernel library.
        threads: As configured; None: as many as pay.
        cores: As configured.

    Raises:
        ConfigError: A core is not there.
    """
    cpus: tuple[int, ...] = ()
    if threads is None or cores != "auto":
        machine = topology.read()
        cpus = machine.select(cores)
        threads = threads or machine.threads(cpus)
    # Only chosen cores are kept to: else the system places threads, but apart.
    pool, count = shared(native, () if cores == "auto" else cpus), threads
    return count, lambda steps, first, last: pool.run(steps, first, last, count)


def _after_fork() -> None:
    global _sharing  # noqa: PLW0603 - a thread that is gone may hold the lock
    _sharing = threading.Lock()
    for pool in list(_pools.values()):
        pool.renew()


os.register_at_fork(after_in_child=_after_fork)
