"""Interrupts, forks and signal handlers at any moment leave a session right."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import edgewise as ew
from edgewise.dtype import DType
from edgewise.ir.graph import Graph, constant, input_value
from edgewise.ir.module import Module
from edgewise.model import Model
from edgewise.ops import Linear, PackPanels, Relu
from edgewise.runtime import executable, memory, pool
from edgewise.types import TensorType

SIZE = 64


def model() -> Model:
    """Two layers, so that inputs, outputs, constants and the arena all have words."""
    rng = np.random.default_rng(0)
    x = value = input_value("x", TensorType(DType.F32, (8, SIZE)))
    for _ in range(2):
        weight = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
        packed = constant(PackPanels((0, 1)).reference(weight))
        value = Relu()(Linear(SIZE)(value, packed))
    return Model(Module({"infer": Graph((x,), (value,), ("y",))}, {}))


def feeds(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((8, SIZE)).astype(np.float32) for _ in range(count)]


class _Interrupts:
    """Raises KeyboardInterrupt at the n-th line of some code, once."""

    def __init__(self, code: object, line: int) -> None:
        self.code, self.line, self.seen, self.hit = code, line, 0, False

    def __enter__(self) -> _Interrupts:
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _call(self, frame, event, argument):
        return self._lines if frame.f_code is self.code else None

    def _lines(self, frame, event, argument):
        if event == "line" and not self.hit:
            self.seen += 1
            if self.seen == self.line:
                self.hit = True
                raise KeyboardInterrupt
        return self._lines


@pytest.mark.parametrize(
    "code",
    [executable.Anchor.move.__code__, executable.Executable._attach.__code__],
    ids=["move", "attach"],
)
def test_an_interrupt_between_any_two_lines_changes_no_later_answer(code) -> None:
    arrays = feeds(3)
    with ew.Session(model(), ew.SessionConfig(threads=1)) as session:
        want = [session.run({"x": x})["y"].copy() for x in arrays]
        hits = 0
        for line in range(1, 60):
            with _Interrupts(code, line) as interrupts:
                try:
                    session.run({"x": arrays[line % 3].copy()})
                except KeyboardInterrupt:
                    hits += 1
            for x, y in zip(arrays, want, strict=True):
                np.testing.assert_array_equal(session.run({"x": x})["y"], y)
            if not interrupts.hit:
                break
    assert hits >= 3


def test_an_interrupt_while_the_arena_grows_leaves_the_address_of_its_memory() -> None:
    code = memory.Arena.reserve.__code__
    for line in range(1, 6):
        arena = memory.Arena()
        with _Interrupts(code, line), contextlib.suppress(KeyboardInterrupt):
            arena.reserve(4096)
        assert arena.base == memory.address(arena.memory)


def test_an_interrupt_while_workers_are_hired_makes_no_two_of_one_number() -> None:
    code = pool.Pool._hire.__code__
    arrays = feeds(1)
    for line in range(1, 14):
        with ew.Session(model(), ew.SessionConfig(threads=3)) as session:
            with _Interrupts(code, line), contextlib.suppress(KeyboardInterrupt):
                session.run({"x": arrays[0]})
            session.run({"x": arrays[0]})
            names = [t.name for t in threading.enumerate() if "edgewise-" in t.name]
            assert len(names) == len(set(names))
        del session


def test_children_forked_during_runs_compute_the_same() -> None:
    arrays = feeds(4)
    with ew.Session(model(), ew.SessionConfig(threads=1)) as session:
        want = session.run({"x": arrays[0]})["y"].copy()
        over = threading.Event()

        def busy() -> None:
            turn = 0
            while not over.is_set():
                turn += 1
                session.run({"x": arrays[turn % 4]})

        thread = threading.Thread(target=busy)
        thread.start()
        try:
            codes = [_child(session, arrays[0], want) for _ in range(40)]
        finally:
            over.set()
            thread.join()
    assert codes == [0] * 40


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def _child(session: ew.Session, x: np.ndarray, want: np.ndarray) -> int:
    child = os.fork()
    if child == 0:
        same = np.array_equal(session.run({"x": x})["y"], want)
        os._exit(0 if same else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_run_inside_a_run_is_refused_and_does_not_hang() -> None:
    arrays = feeds(1)
    refused: list[ew.ConfigError] = []
    with ew.Session(model(), ew.SessionConfig(threads=1)) as session:

        def handler(number: int, frame: object) -> None:
            try:
                session.run({"x": arrays[0]})
            except ew.ConfigError as error:
                refused.append(error)

        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            end = time.monotonic() + 10
            while not refused and time.monotonic() < end:
                session.run({"x": arrays[0]})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert "inside a run" in str(refused[0])
