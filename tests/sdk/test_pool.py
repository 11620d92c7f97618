"""Threads: the same bits for any number of them, and a clean end by every door."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PREAMBLE = """
import gc, os, signal, sys, threading, time
import numpy as np
from edgewise import Session, SessionConfig, ops
from edgewise.dims import symbol
from edgewise.ir.graph import Graph, input_value
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.types import DType, TensorType

def chain(length):
    x = input_value("x", TensorType(DType.F32, (symbol("N"), 256)))
    y = x
    for _ in range(length):
        y = ops.Softmax(1)(ops.Mul()(y, x))
    return Model(Module({"infer": Graph((x,), (y,), ("y",))}, {}))

def session(threads, length=20, **options):
    return Session(chain(length), SessionConfig(threads=threads, **options))

def workers():
    return [t for t in threading.enumerate() if t.name.startswith("edgewise-")]

data = np.random.default_rng(0).standard_normal((300, 256)).astype("f4")
"""


def run_script(body: str, code: int = 0) -> str:
    """Run a script in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, (done.returncode, done.stderr)
    if code == 0:
        assert not done.stderr
    return done.stdout.strip()


def test_any_number_of_threads_gives_the_same_bits() -> None:
    body = """
    with session(1) as one:
        wanted = one(data)
    for threads in (2, 3, 7):
        with session(threads) as several:
            for _ in range(20):
                assert several(data).tobytes() == wanted.tobytes()
    """
    run_script(body)


def test_one_thread_never_uses_a_second_core() -> None:
    body = """
    with session(2) as other, session(1) as one:
        other(data)  # a pool that is there, and idle
        time.sleep(0.05)
        start, busy = time.perf_counter(), time.process_time()
        while time.perf_counter() - start < 0.4:
            one(data)
        used = (time.process_time() - busy) / (time.perf_counter() - start)
        assert used < 1.1, used
    """
    run_script(body)


def test_sessions_share_one_pool_as_large_as_the_largest_asks() -> None:
    body = """
    a, b, c = session(2), session(4), session(3)
    for each in (a, b, c):
        each(data)
    assert len(workers()) == 3, workers()
    b.close(); a.close()
    c(data)
    del a, b
    gc.collect()
    assert len(workers()) == 3
    c.close()
    gc.collect()
    assert not workers()
    """
    run_script(body)


def test_an_idle_pool_sleeps() -> None:
    body = """
    with session(2) as two:
        two(data)
        time.sleep(0.1)
        busy = time.process_time()
        time.sleep(0.4)
        assert time.process_time() - busy < 0.1
    """
    run_script(body)


def test_many_callers_of_many_sessions_at_once() -> None:
    body = """
    sessions = [session(threads) for threads in (1, 2, 2, 3)]
    wanted = sessions[0](data).tobytes()
    wrong = []
    def call(each):
        for _ in range(10):
            if each(data).tobytes() != wanted:
                wrong.append(each)
    callers = [threading.Thread(target=call, args=(s,)) for s in sessions * 3]
    for caller in callers: caller.start()
    for caller in callers: caller.join()
    assert not wrong
    """
    run_script(body)


def test_child_and_parent_of_a_fork_both_run() -> None:
    body = """
    two = session(2)
    wanted = two(data).tobytes()
    busy = threading.Thread(target=lambda: [two(data) for _ in range(200)], daemon=True)
    busy.start()  # so that locks are held at the moment of the fork
    for _ in range(5):
        child = os.fork()
        if child == 0:
            good = two(data).tobytes() == wanted and len(workers()) == 1
            two.close()
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert two(data).tobytes() == wanted
    """
    run_script(body)


def test_a_forked_child_leaves_by_the_usual_door() -> None:
    body = """
    two = session(2)
    two(data)
    child = os.fork()
    if child == 0:
        two(data)
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """
    run_script(body)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_during_a_run_comes_when_it_returns(threads: int) -> None:
    body = f"""
    long = session({threads}, 400)
    wanted = long(data).tobytes()
    big = np.tile(data, (20, 1))
    threading.Timer(0.15, signal.raise_signal, [signal.SIGINT]).start()
    start = time.perf_counter()
    try:
        for _ in range(100):
            long(big)
    except KeyboardInterrupt:
        print("interrupted")
    assert long(data).tobytes() == wanted
    """
    assert run_script(body) == "interrupted"


def test_a_session_dropped_without_close_takes_its_threads_along() -> None:
    body = """
    two = session(2)
    two(data)
    assert len(workers()) == 1
    del two
    gc.collect()
    assert not workers()
    with session(2) as another:
        another(data)
    """
    run_script(body)


def test_the_interpreter_ends_while_threads_are_parked() -> None:
    run_script("keep = session(3)\nkeep(data)\ntime.sleep(0.1)")


def test_the_interpreter_ends_while_threads_are_spinning() -> None:
    run_script("keep = session(3)\nkeep(data)")


def test_the_interpreter_ends_by_an_exception() -> None:
    run_script("keep = session(3)\nkeep(data)\nraise SystemExit(3)", code=3)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_interpreter_ends_while_a_daemon_thread_is_in_a_run(threads: int) -> None:
    body = f"""
    keep = session({threads}, 400)
    big = np.tile(data, (10, 1))
    def forever():
        while True:
            keep(big)
    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.3)
    """
    run_script(body)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exit_handler_may_still_run_and_close_a_session(threads: int) -> None:
    body = f"""
    import atexit
    def report():
        print(keep(data).tobytes() == wanted)
        keep.close()
    atexit.register(report)  # before the session: so it is called after its own end
    keep = session({threads})
    wanted = keep(data).tobytes()
    """
    assert run_script(body) == "True"


def test_workers_stay_on_the_cores_that_were_chosen() -> None:
    body = """
    cpu = max(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    with session(2, cores=(cpu,)) as pinned:
        pinned(data)
        (worker,) = workers()
        assert os.sched_getaffinity(worker.native_id) == {cpu}
        assert os.sched_getaffinity(0) == before
    """
    run_script(body)


def test_the_words_of_steps_and_pools_are_those_of_the_executor() -> None:
    from edgewise.kernels.native import executor
    from edgewise.runtime import native

    assert native.POOL_WORDS == executor.POOL_WORDS
    assert native.STEP_WORDS == executor.STEP_WORDS


def test_workers_keep_off_the_processor_of_the_caller() -> None:
    body = """
    allowed = os.sched_getaffinity(0)
    with session(2) as several:
        several(data)
        (worker,) = workers()
        kept = os.sched_getaffinity(worker.native_id)
        assert kept <= allowed
        assert len(kept) == len(allowed) - (2 <= len(allowed) <= 8)
        for cpu in sorted(allowed):
            os.sched_setaffinity(0, {cpu})
            several(data)
            kept = os.sched_getaffinity(worker.native_id)
            assert (cpu in kept) == (not 2 <= len(allowed) <= 8)
        os.sched_setaffinity(0, allowed)
    many = len(allowed) + 1
    with session(many) as crowd:
        crowd(data)
        for worker in workers():
            assert os.sched_getaffinity(worker.native_id) == allowed
    """
    run_script(body)


def test_a_sandbox_that_lets_nobody_move_a_thread_is_no_error() -> None:
    body = """
    def refuse(thread, cpus):
        raise PermissionError(1, "Operation not permitted")
    with session(1) as one:
        wanted = one(data).tobytes()
    os.sched_setaffinity = refuse
    with session(2) as several:
        assert several(data).tobytes() == wanted
    """
    run_script(body)
