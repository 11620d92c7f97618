"""Files that are written whole, or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_END = ".tmp"


def replace(
    target: Path,
    fill: Callable[[BinaryIO], object],
    check: Callable[[Path], object] | None = None,
) -> None:
    """Put a file in the place of another when it is complete and on disk.

    What earlier writers of it left unfinished, because they were killed, goes.

    Args:
        target: Its name; links are not followed.
        fill: Writes it.
        check: Reads it back; what it raises leaves all as it was.

    Raises:
        OSError: It cannot be written; what was there before stays as it was.
    """
    if target.exists() and not target.is_file():
        raise OSError(0, "it is no regular file")  # a device would be gone
    _sweep(target)
    draft, file = _begun(target)
    try:
        with file:  # held, and so not swept away, until it has its name
            fill(file)
            file.flush()
            if target.exists():  # who could not read it before shall not now
                os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
            os.fsync(file.fileno())
            if check is not None:
                check(draft)
            draft.replace(target)
    except BaseException:  # an interrupt, too, leaves no half-written file behind
        draft.unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _begun(target: Path) -> tuple[Path, BinaryIO]:
    """A new file beside the target, which this process holds."""
    while True:
        draft = target.with_name(f"{_start(target)}{secrets.token_hex(4)}{_END}")
        file = draft.open("xb")
        with suppress(OSError):  # where files cannot be held, none is swept away
            fcntl.flock(file, fcntl.LOCK_EX)
        if draft.exists():
            return draft, file
        file.close()  # another took it for one that is left, before it was held


def _sweep(target: Path) -> None:
    """Remove what writers of the target left that were killed: nobody holds it."""
    for left in target.parent.glob(f"{_start(target)}*{_END}"):
        with suppress(OSError):
            handle = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(handle)


def _start(target: Path) -> str:
    """What names of unfinished files begin with; names of targets may be too long."""
    return f".ew-{zlib.crc32(os.fsencode(target.name)):08x}-"


def _sync(folder: Path) -> None:
    """Put the new name on disk, too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
