"""The executor: one native call runs many steps; worker threads help where they can.

The host owns threads and memory.  It makes a *pool* of ``POOL_WORDS`` zeroed words,
aligned to 64 bytes, fills in the constants below, and lets threads enter
``ew_work(pool, worker)`` with worker = 1, 2, …; they leave when ``ew_stop(pool)`` is
called, after which the host joins them and may free the pool.

``ew_run(pool, steps, first, last, threads)`` does steps ``[first, last)`` in order with
at most ``threads`` threads, the calling one (worker 0) included, and returns 0 or
``step * 256 + code`` of the step that failed: the run ends after the first step in
which a task failed, with the smallest code among its tasks.  One run at a time per
pool; but a run with ``threads`` = 1 touches no pool (which may be 0) and needs no turn.

A step is ``STEP_WORDS`` words: kernel address, address of its argument words, tasks,
and chunk: how many tasks a thread takes at once (at least 1).

Words of a pool (index, each group on a cache line of its own):

====  ======================================================================
0     claim: ``threads << 32 | tasks not yet taken`` of the open step
8-11  the open step: kernel, arguments, tasks, chunk
16    tasks finished; 17 smallest status so far; 18 tasks that workers did
24    generation (32 bits): what idle workers sleep on
32    sleepers (32 bits)
40    stop (32 bits)
48    address of libc's ``syscall``; 49 number of futex; 50 of sched_yield;
      51 pauses that a worker spins before it sleeps
====  ======================================================================

A step is complete when all its tasks are finished, not when all workers have come: a
worker that the system has put aside without a task is never waited for, and the caller
alone can always finish.  Only who holds a task reads the open step, and the step cannot
end before that task does, so a late worker never sees words of the past.
"""

from __future__ import annotations

from numba import types

from edgewise.kernels.native.abi import helper
from edgewise.kernels.native.atomic import (
    add32,
    add64,
    call_kernel,
    call_system,
    fence,
    keep_smaller,
    load32,
    load64,
    pause,
    replace,
    store32,
    store64,
)

POOL_WORDS = 56
STEP_WORDS = 4

_CLAIM, _OPEN, _FINISHED, _STATUS, _HELPED = 0, 64, 128, 136, 144
_GENERATION, _SLEEPERS, _STOP = 192, 256, 320
_SYSCALL, _FUTEX, _YIELD, _SPINS = 384, 392, 400, 408
_WAIT, _WAKE, _ALL = 128, 129, 1 << 30  # futex operations, private to the process
_REMAINING = (1 << 32) - 1
_NO_STATUS = 256


@helper
def _take(pool, worker):
    """Take tasks of the open step: (how many were left before, how many are ours)."""
    while True:
        claim = load64(pool + _CLAIM)
        left = claim & _REMAINING
        if left == 0 or worker >= claim >> 32:
            return 0, 0
        # A chunk of a step gone by does no harm: any number up to ``left`` is ours.
        ours = min(left, max(load64(pool + _OPEN + 24), 1))
        if replace(pool + _CLAIM, claim, claim - ours):
            return left, ours


@helper
def _help(pool, worker):
    """Do tasks of the open step until none is left; how many we did."""
    done = 0
    while True:
        left, ours = _take(pool, worker)
        if ours == 0:
            return done
        begin = load64(pool + _OPEN + 16) - left
        kernel, words = load64(pool + _OPEN), load64(pool + _OPEN + 8)
        code = call_kernel(kernel, words, begin, begin + ours, worker)
        if code != 0:
            keep_smaller(pool + _STATUS, code)
        if worker > 0:
            add64(pool + _HELPED, ours)
        add64(pool + _FINISHED, ours)
        done += ours


@helper
def _wake(pool):
    add32(pool + _GENERATION, 1)
    syscall, futex = load64(pool + _SYSCALL), load64(pool + _FUTEX)
    call_system(syscall, futex, pool + _GENERATION, _WAKE, _ALL)


@helper
def _run_together(pool, step, tasks, threads):
    """Open a step to the workers, take part, see it complete; its status."""
    for word in range(4):
        store64(pool + _OPEN + 8 * word, load64(step + 8 * word))
    store64(pool + _FINISHED, 0)
    store64(pool + _STATUS, _NO_STATUS)
    store64(pool + _CLAIM, threads << 32 | tasks)
    # Either we see who sleeps, or who goes to sleep sees the open step.
    fence()
    if load32(pool + _SLEEPERS) > 0:
        _wake(pool)
    _help(pool, 0)
    waited = 0
    while load64(pool + _FINISHED) < tasks:
        pause()
        waited += 1
        if waited > load64(pool + _SPINS):
            call_system(load64(pool + _SYSCALL), load64(pool + _YIELD), 0, 0, 0)
    return load64(pool + _STATUS) % _NO_STATUS


def run(pool, steps, first, last, threads):
    """Steps ``[first, last)`` in order; 0 or ``step * 256 + code``."""
    for index in range(first, last):
        step = steps + index * 8 * STEP_WORDS
        tasks = load64(step + 16)
        if threads == 1 or tasks == 1:
            code = types.int64(call_kernel(load64(step), load64(step + 8), 0, tasks, 0))
        else:
            code = _run_together(pool, step, tasks, threads)
        if code != 0:
            return index * 256 + code
    return 0


@helper
def _sleep(pool):
    """Wait on the generation, unless a step was opened or we must stop."""
    seen = load32(pool + _GENERATION)
    add32(pool + _SLEEPERS, 1)
    fence()
    idle = load64(pool + _CLAIM) & _REMAINING == 0
    if idle and load32(pool + _STOP) == 0:
        syscall, futex = load64(pool + _SYSCALL), load64(pool + _FUTEX)
        call_system(syscall, futex, pool + _GENERATION, _WAIT, seen)
    add32(pool + _SLEEPERS, -1)


def work(pool, worker):
    """The life of a worker: spin a while for an open step, then sleep; until stop."""
    waited = 0
    while load32(pool + _STOP) == 0:
        if _help(pool, worker) > 0:
            waited = 0
        pause()
        waited += 1
        if waited > load64(pool + _SPINS):
            waited = 0
            _sleep(pool)
    return 0


def stop(pool):
    """Send all workers home; the host joins them then."""
    store32(pool + _STOP, 1)
    fence()
    _wake(pool)
    return 0


_WORD = types.int64
EXPORTS = {
    "ew_run": (run, _WORD(_WORD, _WORD, _WORD, _WORD, _WORD)),
    "ew_work": (work, _WORD(_WORD, _WORD)),
    "ew_stop": (stop, _WORD(_WORD)),
}
