"""Processes that end with the one that started them, whatever happens to it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import current_thread, main_thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from edgewise.errors import FederatedError

PATIENCE = 5.0  # seconds between asking to end and making it so
ORPHANS = 3.0  # the same, for what those have started
LOOK = 0.005  # the same, between two looks who has: no ended one stays as a name
LINES = 8  # of a log, in an error
SUBREAPER, DEATH_SIGNAL = 36, 1  # of Linux's prctl
LINUX = sys.platform == "linux"
LIBRARY = ctypes.CDLL(None)  # opened here: between fork and exec nothing may be


class Started(NamedTuple):
    """A process.

    Attributes:
        name: For errors.
        process: Itself, leader of a group of its own.
        log: Where its output goes.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def peak(self) -> int:
        """Bytes of memory that it took at most; 0 where that is not known."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0
        rows = dict(row.split(":", 1) for row in text.splitlines() if ":" in row)
        return 1024 * int(rows.get("VmHWM", "0 kB").split()[0])

    def last_lines(self, most: int = LINES) -> str:
        """The end of its output, in one line."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return " | ".join(line.strip() for line in text.splitlines()[-most:])


class Family:
    """Processes and what they start: none outlives the block.

    On Linux they also end where this process is killed, and their orphans are taken in.
    """

    def __init__(self) -> None:
        self._started: list[Started] = []
        self._others: frozenset[int] = frozenset()
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take in what loses its parent from here on; SIGTERM leaves the block."""
        self._others = _children()
        _prctl(SUBREAPER, 1)
        self._handle(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End them all, and be interrupted by nothing on the way."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handle(number, signal.SIG_IGN)
        self.stop(self._started)
        self._end_orphans()
        _prctl(SUBREAPER, 0)
        for handled, before in self._handlers.items():
            signal.signal(handled, before)

    def _handle(self, number: int, how: Any) -> None:
        """Set what a signal does; what it did before comes back at the end."""
        if current_thread() is main_thread():
            before = signal.signal(number, how)
            self._handlers.setdefault(number, before)

    def start(
        self, name: str, line: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> Started:
        """Start a process.

        Args:
            name: For errors.
            line: Program and arguments.
            environment: All of it.
            log: Where its output goes.

        Raises:
            FederatedError: It cannot be started.
        """
        parent = os.getpid()

        def bind() -> None:
            _prctl(DEATH_SIGNAL, signal.SIGTERM)
            if os.getppid() != parent:  # killed in between
                os._exit(1)

        try:
            with log.open("wb") as output:
                process = subprocess.Popen(  # noqa: S603 - programs of ours
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    start_new_session=True,
                    preexec_fn=bind if LINUX else None,  # noqa: PLW1509 - takes no lock
                )
        except OSError as error:
            raise FederatedError(f"{name} cannot be started: {error}") from error
        self._started.append(Started(name, process, log))
        return self._started[-1]

    def want_all(self) -> None:
        """Raise where a process has ended.

        Raises:
            FederatedError: Which, with the end of its output.
        """
        for started in self._started:
            code = started.process.poll()
            if code is not None:
                how = f"was killed (signal {-code})" if code < 0 else f"ended ({code})"
                said = started.last_lines()
                raise FederatedError(
                    f"{started.name} {how}: {said}" if said else f"{started.name} {how}"
                )

    def stop(self, some: Sequence[Started]) -> None:
        """Ask processes to end; those that do not are ended, with what they started."""
        chosen = list(some)
        for started in chosen:
            if started.process.poll() is None:
                started.process.terminate()
        deadline = time.monotonic() + PATIENCE
        while left := [one for one in chosen if one.process.poll() is None]:
            if time.monotonic() > deadline:
                for started in left:
                    started.process.kill()
            time.sleep(LOOK)
        self._started = [one for one in self._started if one not in chosen]

    def _end_orphans(self) -> None:
        """End what the processes left behind, some of it in sessions of its own."""
        start = time.monotonic()
        while left := _children() - self._others:
            late = time.monotonic() - start > ORPHANS
            for child in left:
                ended, _ = os.waitpid(child, os.WNOHANG)
                if not ended:
                    os.kill(child, signal.SIGKILL if late else signal.SIGTERM)
            time.sleep(0.1)


def end_with_parent() -> None:
    """End at once where the process that started this one ends, if killed, too.

    Flower's own watch over its parent was seen to hang in saying good-bye to a server
    that is gone.
    """
    _prctl(DEATH_SIGNAL, signal.SIGKILL)


def _children() -> frozenset[int]:
    """Processes of which this one is the parent; on Linux."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = status.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has just ended
            continue
        if int(after_name.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(status.parent.name))
    return frozenset(found)


def _prctl(option: int, value: int) -> None:
    if LINUX:
        LIBRARY.prctl(option, value, 0, 0, 0)
