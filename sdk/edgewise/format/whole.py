"""Files that are written whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def replace(
    target: Path,
    fill: Callable[[BinaryIO], object],
    check: Callable[[Path], object] | None = None,
) -> None:
    """Put a file in the place of another when it is complete and on disk.

    Args:
        target: Its name; links are not followed.
        fill: Writes it.
        check: Reads it back; what it raises leaves all as it was.

    Raises:
        OSError: It cannot be written; what was there before stays as it was.
    """
    if target.exists() and not target.is_file():
        raise OSError(0, "it is no regular file")  # a device would be gone
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
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


def _sync(folder: Path) -> None:
    """Put the new name on disk, too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
