"""The executor alone: steps, tasks, workers, statuses."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from edgewise.kernels.catalog.base import f32_word
from edgewise.runtime import library
from edgewise.runtime.native import FUTEX, POOL_WORDS, SPINS, SYSCALL, YIELD
from edgewise.runtime.pool import SYSTEM_CALLS

Task = Callable[[int, int, int], int]
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *[ctypes.c_int64] * 3)


def words(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    raw = np.zeros(count + 8, np.int64)
    start = -raw.ctypes.data % 64 // 8
    return raw[start : start + count]


class Workers:
    """A pool with its threads, as a host keeps them."""

    def __init__(self, count: int, spins: int = 200) -> None:
        self.native, self.pool = library.load(), words(POOL_WORDS)
        libc = ctypes.CDLL(None)
        self.pool[SYSCALL] = ctypes.cast(libc.syscall, ctypes.c_void_p).value
        self.pool[FUTEX], self.pool[YIELD] = SYSTEM_CALLS[os.uname().machine]
        self.pool[SPINS] = spins
        self.address = int(self.pool.ctypes.data)
        self.threads = [
            threading.Thread(target=self.native.work, args=(self.address, worker))
            for worker in range(1, count + 1)
        ]

    def __enter__(self) -> Workers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.native.stop(self.address)
        for thread in self.threads:
            thread.join()


class Plan:
    """Steps whose kernels are Python functions."""

    def __init__(self, *steps: tuple[Task, int], chunk: int = 1) -> None:
        def kernel(task: Task) -> Any:
            return KERNEL(lambda _, begin, end, worker: task(begin, end, worker))

        self.kernels = [kernel(task) for task, _ in steps]
        rows = [
            (ctypes.cast(k, ctypes.c_void_p).value, 0, tasks, chunk)
            for k, (_, tasks) in zip(self.kernels, steps, strict=True)
        ]
        self.steps = np.array(rows, np.int64).reshape(-1, 4)

    def run(
        self, workers: Workers | None, threads: int, first: int = 0, last: int = -1
    ) -> int:
        end = len(self.steps) if last < 0 else last
        pool = workers.address if workers else 0
        start = int(self.steps.ctypes.data)
        return library.load().run(pool, start, first, end, threads)


class Seen:
    """What a step was asked to do, in the order of the calls."""

    def __init__(self, pause: float = 0.0) -> None:
        self.calls: list[tuple[int, int, int]] = []
        self.pause = pause

    def __call__(self, begin: int, end: int, worker: int) -> int:
        self.calls.append((begin, end, worker))
        time.sleep(self.pause)
        return 0

    @property
    def tasks(self) -> list[int]:
        spans = (range(begin, end) for begin, end, _ in self.calls)
        return sorted(itertools.chain.from_iterable(spans))

    @property
    def workers(self) -> set[int]:
        return {worker for _, _, worker in self.calls}


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(2) as found:
        yield found


def test_one_thread_needs_no_pool_and_takes_a_step_at_once() -> None:
    first, second = Seen(), Seen()
    assert Plan((first, 5), (second, 1)).run(None, 1) == 0
    assert first.calls == [(0, 5, 0)]
    assert second.calls == [(0, 1, 0)]


def test_no_steps_are_done_at_once(workers: Workers) -> None:
    assert Plan().run(workers, 3) == 0


def test_every_task_is_done_once_and_workers_help(workers: Workers) -> None:
    seen = Seen(pause=0.002)
    assert Plan((seen, 60)).run(workers, 3) == 0
    assert seen.tasks == list(range(60))
    assert seen.workers == {0, 1, 2}


def test_a_step_of_one_task_stays_with_the_caller(workers: Workers) -> None:
    steps = [Seen() for _ in range(20)]
    assert Plan(*((seen, 1) for seen in steps)).run(workers, 3) == 0
    assert [seen.calls for seen in steps] == [[(0, 1, 0)]] * 20


def test_no_more_threads_than_asked_for(workers: Workers) -> None:
    seen = Seen(pause=0.002)
    for _ in range(5):
        assert Plan((seen, 12)).run(workers, 2) == 0
    assert 2 not in seen.workers


def test_more_threads_than_there_are_is_no_harm(workers: Workers) -> None:
    seen = Seen()
    assert Plan((seen, 30)).run(workers, 64) == 0
    assert seen.tasks == list(range(30))


def test_a_chunk_is_taken_at_once(workers: Workers) -> None:
    seen = Seen(pause=0.001)
    assert Plan((seen, 10), chunk=4).run(workers, 3) == 0
    assert sorted(call[:2] for call in seen.calls) == [(0, 4), (4, 8), (8, 10)]


def test_a_part_of_the_steps_may_run(workers: Workers) -> None:
    steps = [Seen() for _ in range(4)]
    plan = Plan(*((seen, 2) for seen in steps))
    assert plan.run(workers, 3, 1, 3) == 0
    assert [len(seen.tasks) for seen in steps] == [0, 2, 2, 0]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_step_that_fails_ends_the_run(workers: Workers, threads: int) -> None:
    after = Seen()

    def fails(begin: int, end: int, worker: int) -> int:
        return 7 if begin <= 5 < end else 0

    plan = Plan((Seen(), 4), (fails, 9), (after, 3))
    assert plan.run(workers, threads) == 1 * 256 + 7
    assert after.calls == []


def test_the_smallest_status_of_a_step_wins(workers: Workers) -> None:
    def fails(begin: int, end: int, worker: int) -> int:
        return 200 - begin

    for _ in range(5):
        assert Plan((Seen(), 1), (fails, 40)).run(workers, 3) == 256 + 200 - 39


def test_a_run_after_a_failure_starts_afresh(workers: Workers) -> None:
    seen = Seen()
    assert Plan((lambda *_: 3, 8)).run(workers, 3) == 3
    assert Plan((seen, 8)).run(workers, 3) == 0
    assert seen.tasks == list(range(8))


def test_a_worker_that_comes_late_is_not_waited_for() -> None:
    pool = Workers(2)  # none of its threads has started
    seen = Seen()
    assert Plan((seen, 50)).run(pool, 3) == 0
    assert seen.tasks == list(range(50))


def test_sleeping_workers_are_woken() -> None:
    with Workers(2, spins=1) as pool:
        for _ in range(3):
            time.sleep(0.02)
            seen = Seen(pause=0.003)
            assert Plan((seen, 30)).run(pool, 3) == 0
            assert seen.workers == {0, 1, 2}


def test_tasks_are_done_once_in_many_short_runs() -> None:
    """Native tasks, so that threads truly meet: each adds to memory of its own."""
    native = library.load()
    out = np.zeros((64, 16), np.float32)
    plan = np.zeros((3, 4), np.int64)
    arguments = np.array([out.ctypes.data, f32_word(1.0), f32_word(0.0)], np.int64)
    kernel = native.address("peak_f32")
    plan[:] = kernel, arguments.ctypes.data, 5, 1
    plan[1, 2] = 1
    with Workers(2, spins=50) as pool:
        for _ in range(5000):
            start = int(plan.ctypes.data)
            assert native.run(pool.address, start, 0, 3, 3) == 0
    assert (out[0] == 21.0).all()
