"""The kernel library of this processor: found, or built once, checked and loaded."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgewise import _env
from edgewise.errors import InternalError, KernelLibraryError
from edgewise.kernels import levels, sources

if TYPE_CHECKING:  # logging is imported when there is something to tell
    from logging import Logger

PACKAGE = Path(__file__).parent.parent
# In a checkout the sources may be newer than the library beside them.
CHECKOUT = (PACKAGE.parent.parent / "pyproject.toml").exists()
BUILDER = "edgewise.kernels.native.build"
NEWS = "kernels: "  # how lines of the builder begin that tell how it goes

Progress = Callable[[str], None]


class Library:
    """A loaded kernel library; stays loaded until the process ends.

    Attributes:
        path: The file.
        level: The level of processor it was made for.
        abi: Hash of the sources it was built from.
        run: Does steps ``[first, last)``, given pool, steps, first, last and threads:
            0, or ``step * 256 + status``.
        work: Helps every run of a pool, as a worker, until it is stopped.
        stop: Sends the workers of a pool home.
    """

    # Functions as they were loaded: a method around one would cost 0.2 us a run.
    __slots__ = ("_library", "abi", "level", "path", "run", "stop", "work")

    def __init__(self, path: Path, level: str) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
            words = {"ew_abi": 0, "ew_run": 5, "ew_work": 2, "ew_stop": 1}
            functions = [self._function(name, count) for name, count in words.items()]
        except (OSError, AttributeError) as error:
            raise KernelLibraryError(
                f"{path}: not a kernel library: {error}"
            ) from error
        abi, self.run, self.work, self.stop = functions
        self.path, self.level, self.abi = path, level, int(abi())

    def _function(self, name: str, words: int) -> Callable[..., int]:
        function = getattr(self._library, name)
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_int64] * words
        found: Callable[..., int] = function
        return found

    def address(self, symbol: str) -> int:
        """Address of a kernel."""
        try:
            function = getattr(self._library, symbol)
        except AttributeError as error:
            raise InternalError(f"{self.path} has no kernel {symbol}") from error
        return ctypes.cast(function, ctypes.c_void_p).value or 0


def load(progress: Progress | None = None) -> Library:
    """The kernel library of this processor, the same one at every call.

    Args:
        progress: Told, line by line, how a build goes; by default the log is.

    Raises:
        KernelLibraryError: No kernels fit the processor, or the library is missing and
            cannot be built.
    """
    names = tuple(level.name for level in levels.host_levels())
    return _load(names, progress or _log)


@functools.cache
def _load(names: tuple[str, ...], progress: Progress) -> Library:
    """Of levels that the processor can run, the best first."""
    level = names[0]
    brought = next((name for name in names if is_whole(packaged(name))), level)
    shipped = packaged(brought)
    if is_whole(shipped):
        stale = CHECKOUT and sources.changed() > shipped.stat().st_mtime
        if not stale:
            return Library(shipped, brought)
    wanted = sources.library_hash()
    kept = cached(level, wanted)
    for name, path in ((brought, shipped), (level, kept)):
        if is_whole(path):
            library = Library(path, name)
            if library.abi == wanted:
                return library
            _logger().debug("%s is of other sources", path)
    _want_compiler(level, shipped)
    if kept.exists():
        _logger().warning("%s is damaged; building it again", kept)
        kept.unlink()
    return Library(build(level, kept, progress), level)


def _want_compiler(level: str, shipped: Path) -> None:
    """Raise where no library is of use and none can be made, as on most devices."""
    from importlib.util import find_spec  # noqa: PLC0415 - few runs come here

    if find_spec("numba"):
        return
    state = "is missing" if not shipped.exists() else "is damaged"
    state = "is of other sources" if is_whole(shipped) else state
    raise KernelLibraryError(
        f"no kernels for this processor ({level}): {shipped} {state}, and numba, which"
        " compiles them, is not installed; install a wheel of edgewise made for"
        f" {level}, or pip install 'edgewise[build]'"
    )


def is_whole(path: Path) -> bool:
    """Whether a library is there to its last byte: one cut short crashes its user.

    The table of sections is what the linker writes last (System V ABI, figure 4-3).
    """
    try:
        with path.open("rb") as file:
            header = file.read(64)
            size = path.stat().st_size
    except OSError:
        return False
    if len(header) < 64 or header[:5] != b"\x7fELF\x02":
        return False
    (table,) = struct.unpack_from("<Q", header, 40)
    entry, count = struct.unpack_from("<HH", header, 58)
    return bool(table + entry * count <= size)


def packaged(level: str) -> Path:
    """Where a wheel or an editable build puts the library of ``level``."""
    return PACKAGE / "lib" / f"kernels-{level}.so"


def cached(level: str, abi: int) -> Path:
    """Where a library built when it was first needed is kept."""
    return _env.cache_dir() / f"kernels-{level}-{abi & (2**64 - 1):016x}.so"


def build(level: str, path: Path, progress: Progress) -> Path:
    """Compile the library in a process of its own; only one process does so at a time.

    Compiling here would bring in numba, and change it for good.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _compile(level, path, progress)
    except OSError as error:
        raise KernelLibraryError(
            f"cannot keep a kernel library in {path.parent}: {error}"
        ) from error
    return path


def _compile(level: str, path: Path, progress: Progress) -> None:
    import subprocess  # noqa: PLC0415 - 5 ms that few runs need

    progress(f"building the {level} kernel library, once, into {path.parent}")
    command = [sys.executable, "-m", BUILDER, "--level", level, "-o", str(path)]
    tail = ""
    with subprocess.Popen(  # noqa: S603 - our own module, no shell
        command, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr or ():
            tail = line.strip() or tail
            if tail.startswith(NEWS):  # what compilers say is not for users
                progress(tail)
    if process.returncode:
        raise KernelLibraryError(f"the kernel library cannot be built: {tail}")


def _log(line: str) -> None:
    """A first run that stands still for half a minute must say why, on any terminal."""
    _logger().warning("%s", line)


def _logger() -> Logger:
    import logging  # noqa: PLC0415 - 5 ms that a run with a library need not pay

    return logging.getLogger(__name__)
