"""The file around the tables: header, checksum, and segments on 64-byte lines.

u32 size | FlatBuffer, `size` bytes | u32 CRC-32 of both | zeros to a multiple of 64
segment | zeros to a multiple of 64 | segment | ...
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import zlib
from collections.abc import Sequence
from typing import TypeAlias

from edgewise.format._generated.schema import IDENTIFIER
from edgewise.format.tables import DamageError
from edgewise.named import NamedTuple

ALIGNMENT = 64
MAX_HEADER = 1 << 26
_U32 = struct.Struct("<I")

Segment: TypeAlias = tuple[int, int, int]


class Contents(NamedTuple):
    """A file in two parts.

    Attributes:
        header: A private copy of the tables: nobody can change what was checked.
        data: What follows the header's last line; the map, where it is a file.
    """

    header: bytes
    data: memoryview


def aligned(size: int) -> int:
    """The next multiple of 64."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def seal(header: bytes) -> bytes:
    """The header with its checksum, filled up to where data may start."""
    sealed = header + _U32.pack(zlib.crc32(header))
    return sealed.ljust(aligned(len(sealed)), b"\0")


def open_file(path: str | os.PathLike[str]) -> Contents:
    """Map a file and split it.

    Raises:
        OSError: It cannot be opened or mapped.
        DamageError: It is no model file, or its header is damaged.
    """
    # O_NONBLOCK: opening a pipe must not wait for a writer.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a null in the path
        raise DamageError(f"cannot be read: {error}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise DamageError("is not a regular file")
        if not status.st_size:  # nothing to map
            raise DamageError("is no model file: it is empty")
        mapped = mmap.mmap(handle, status.st_size, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    return split(memoryview(mapped))


def split(whole: memoryview) -> Contents:
    """The parts of a file in memory."""
    size = len(whole)
    if size < 16 or bytes(whole[8:12]) != IDENTIFIER:
        raise _foreign(bytes(whole[:64]))
    end = 4 + _U32.unpack_from(whole)[0]
    if end > MAX_HEADER:
        raise DamageError(f"the header has {end} bytes; at most {MAX_HEADER} are read")
    start = aligned(end + 4)
    if start > size:
        raise DamageError(f"is cut short: {size} bytes; the header alone needs {start}")
    header = bytes(whole[:end])
    if zlib.crc32(header) != _U32.unpack_from(whole, end)[0]:
        raise DamageError("the header does not match its checksum")
    return Contents(header, whole[start:])


def _foreign(start: bytes) -> DamageError:
    from edgewise.format.foreign import advice  # noqa: PLC0415 - only for the message

    mark = f"is no model file: want {IDENTIFIER.decode()} at byte 8"
    return DamageError(advice(start, "ew") or mark)


def want_segments(segments: Sequence[Segment], size: int) -> None:
    """Raise ``DamageError`` unless segments lie in order in ``size`` bytes."""
    end = 0
    for index, (offset, length, _) in enumerate(segments):
        if offset < end or offset % ALIGNMENT:
            raise DamageError(
                f"segment {index} starts at {offset}; want a multiple of {ALIGNMENT} "
                f"from {end} on, where the one before it ends"
            )
        end = offset + length
    if aligned(end) != size:
        raise DamageError(
            f"is cut short or too long: {size} bytes of data; want {aligned(end)}"
        )


def want_checksums(contents: Contents, segments: Sequence[Segment]) -> None:
    """Raise ``DamageError`` unless every byte is as it was written."""
    for index, (offset, length, checksum) in enumerate(segments):
        if zlib.crc32(contents.data[offset : offset + length]) != checksum:
            raise DamageError(f"segment {index} does not match its checksum")
        padding = contents.data[offset + length : aligned(offset + length)]
        if any(padding):
            raise DamageError(f"the padding after segment {index} is not zero")
