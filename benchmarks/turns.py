"""Engines in processes of their own that take turns on the same cores."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = Path(__file__).with_name("engines.py")
TURNS, RUNS = 10, 5
LONGEST = 1.5  # seconds of a turn at most: fewer runs of models that take long
WRONG = 1e-2  # relative error beyond which an answer is no answer


class Stopped(Exception):  # noqa: N818 - not an error of ours
    """An engine that cannot do a model, and its last words."""


class Worker:
    """One engine with one model loaded.

    Attributes:
        best: Shortest run so far, in seconds.
        outputs: What it answered first.
    """

    def __init__(
        self, engine: str, model: Path, feed: Path, threads: int, folder: Path
    ) -> None:
        self.best, self._outputs = float("inf"), folder / f"{engine}.npz"
        # Not a pipe: a chatty engine would fill one that nobody reads.
        self._words = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as we do
        places = map(str, (model, feed, threads, self._outputs))
        self._process = subprocess.Popen(
            [sys.executable, str(ENGINES), engine, *places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
        )
        self._line("ready")
        with np.load(self._outputs) as archive:
            self.outputs = [archive[name] for name in archive.files]

    def _line(self, start: str) -> str:
        """The next line that starts like that; engines print lines of their own."""
        for line in self._process.stdout or ():
            if line.startswith(start):
                return line
        self._words.seek(0)
        last = self._words.read().strip().rpartition("\n")[2][-200:]
        raise Stopped(last or f"it ended with status {self._process.wait()}")

    def turn(self, runs: int) -> None:
        """Time some runs."""
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        self._process.stdin.write(f"{runs}\n")
        self._process.stdin.flush()
        self.best = min(self.best, *json.loads(self._line("[")))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._words.close()


def take_turns(
    engines: Sequence[str], model: Path, feed: Mapping[str, Any], threads: int
) -> tuple[dict[str, Worker], dict[str, str]]:
    """What each engine did, closed again, and why others did nothing.

    Engines whose answer is not that of onnxruntime are among the others.
    """
    done: dict[str, Worker] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "feed.npz", **feed)
        for engine in engines:
            try:
                done[engine] = Worker(
                    engine, model, folder / "feed.npz", threads, folder
                )
            except Stopped as words:
                failed[engine] = str(words)
        _alternate(list(done.values()))
        for worker in done.values():
            worker.close()
    want = done["onnxruntime"].outputs
    for engine in [name for name in done if error(done[name].outputs, want) > WRONG]:
        found = error(done.pop(engine).outputs, want)
        failed[engine] = f"a wrong answer (error {found:.1e})"
    return done, failed


def _alternate(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.turn(1)
    longest = max(worker.best for worker in workers)
    runs = max(min(RUNS, int(LONGEST / longest)), 1)
    for _ in range(TURNS):
        for worker in workers:
            worker.turn(runs)


def error(got: Sequence[Any], want: Sequence[Any]) -> float:
    """Largest relative error of the outputs in the Euclidean norm; inf for NaN."""
    return max(map(_distance, got, want)) if len(got) == len(want) else float("inf")


def _distance(got: Any, want: Any) -> float:
    a, b = (np.asarray(x, np.float64).ravel() for x in (got, want))
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-3 * b.size**0.5))
