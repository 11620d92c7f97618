"""What the environment may set; the only reader of ``os.environ``."""

from __future__ import annotations

import os
from pathlib import Path

from edgewise.errors import ConfigError

MAX_THREADS = 1024


def cache_dir() -> Path:
    """Folder for compiled kernels: ``EDGEWISE_CACHE_DIR``, else the user's cache."""
    given = os.environ.get("EDGEWISE_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edgewise"


def state_dir() -> Path:
    """Folder for what has to outlive a process: the user's state."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "edgewise"


def threads() -> int | None:
    """Threads per session where the configuration leaves them open."""
    given = os.environ.get("EDGEWISE_THREADS")
    if given is None:
        return None
    plain = given.isascii() and given.isdecimal() and len(given) < 9
    if not plain or not 1 <= int(given) <= MAX_THREADS:
        raise ConfigError(
            f"EDGEWISE_THREADS={given!r}: want a whole number from 1 to {MAX_THREADS}"
        )
    return int(given)


def columns() -> int | None:
    """Characters that a line of a table may take, where ``COLUMNS`` says so."""
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isascii() and given.isdecimal() else None


def log_level() -> str | None:
    """Name of the logging level the command should use."""
    return os.environ.get("EDGEWISE_LOG")
