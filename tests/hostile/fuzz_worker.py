"""The process that tries mutants: ``fuzz_worker.py KIND FIRST LAST SEEDS``."""

from __future__ import annotations

import json
import logging
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import fuzz_mutate as mutate
import numpy as np
from fuzz_seeds import Seed, ew_seeds, onnx_seeds

import edgewise as ew
from edgewise.errors import KERNEL_FAULT, InternalError, KernelError
from edgewise.runtime import library
from edgewise.tools.inputs import random_inputs

ADDRESS_SPACE = 6 << 30
MOST = 1 << 28  # bytes that a session may plan for
HANG = 60  # seconds: then the mutant is given up, and counted as odd
SLOW = 10  # seconds that converting a small file, or loading one, may take
CONVERT = ew.ConvertConfig(random=True)
SESSION = ew.SessionConfig(threads=1, memory_limit=MOST, arena_limit=MOST)


class HangError(BaseException):
    """Nothing in edgewise may catch it."""


def _hang(signum: int, frame: FrameType | None) -> None:
    raise HangError


def tried(kind: str, number: int, seeds: list[Seed], folder: Path) -> str:
    """What became of a mutant: accepted, ran, refused; else what is odd about it."""
    reached = "refused"
    try:
        for step in _steps(kind, number, seeds, folder):
            reached = step
    except (ew.EdgewiseError, HangError) as error:
        return _fault(error) or reached
    except Exception as error:  # noqa: BLE001 - what this is for
        return f"odd: {type(error).__name__}: {error}"
    return reached


def _steps(kind: str, number: int, seeds: list[Seed], folder: Path) -> Iterator[str]:
    """How far a mutant comes."""
    rng = random.Random(f"{kind} {number}")  # noqa: S311 - no secret
    seed, other = rng.choice(seeds), rng.choice(seeds)
    start = time.perf_counter()
    if kind == "ew-bytes":
        # A name of its own: cutting a file that is mapped would be our own fault.
        path = folder / f"{number}.ew"
        path.write_bytes(mutate.sealed(rng, seed.data))
        try:
            model = ew.load(path)
        finally:
            path.unlink()
    elif kind == "onnx-bytes":
        model = ew.convert(mutate.changed(rng, seed.data), CONVERT)
    else:
        model = ew.convert(mutate.fields(rng, seed.data, other.data), CONVERT)
    taken = time.perf_counter() - start
    yield "accepted" if taken < SLOW else f"odd: took {taken:.0f} s to load"
    if taken < SLOW:
        with ew.Session(model, SESSION) as session:
            session.run(_feed(model))
        yield "ran"


def _fault(error: BaseException) -> str:
    """What is odd about an error; empty: it is what a user should see."""
    if isinstance(error, HangError):
        return f"odd: no end after {HANG} s"
    text = str(error)
    if isinstance(error, InternalError) or not text.isprintable() or not text:
        return f"odd: {type(error).__name__}: {text!r}"
    if isinstance(error, KernelError) and error.status == KERNEL_FAULT:
        return f"odd: {text}, by {error.__cause__!r}"
    return ""


def _feed(model: ew.Model) -> dict[str, object]:
    """Random inputs, where they are small enough to try."""
    for info in model.inputs:
        sizes = [size for size in info.shape if isinstance(size, int)]
        if np.prod(np.array(sizes, object)) > MOST // 64:
            raise ew.ShapeError("too large to try")
    return random_inputs(model)


def _silence() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def main(kind: str, first: int, last: int, more: Path) -> None:
    """Print a line before each mutant and one after it."""
    _silence()
    library.load()  # it may have to be built first
    seeds = ew_seeds(more) if kind == "ew-bytes" else onnx_seeds(more)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _hang)
    with tempfile.TemporaryDirectory() as name:
        for number in range(first, last):
            say(mutant=number)
            signal.alarm(HANG)
            try:
                outcome = tried(kind, number, seeds, Path(name))
            except HangError:  # between two statements of an error's own handling
                outcome = f"odd: no end after {HANG} s"
            signal.alarm(0)
            odd = outcome.startswith("odd")
            what = f"{kind} {number}: {outcome}"[:500] if odd else ""
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            say(
                mutant=number,
                outcome="odd" if odd else outcome,
                what=what,
                megabytes=peak,
            )


def say(**facts: object) -> None:
    """One line of JSON."""
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
