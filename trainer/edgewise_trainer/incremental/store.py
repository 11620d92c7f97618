"""A memory of examples in a file of SQLite, which survives the death of its process.

Records lie in blocks of a few pages.  A transaction changes ``DIRTY`` pages at most, so
that its journal stays small beside the memory, and a process that is killed loses what
it wrote last and nothing else.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Self

from edgewise.errors import CheckpointError
from edgewise_trainer.checkpoint import DAMAGED

VERSION = 2
PAGE = 4096
# Of a page, as the file format of SQLite has it: what a row may have without pages of
# its own, the least that stays in the tree beside those, and what one of those holds.
LOCAL, SPILLED, OVERFLOW = PAGE - 35, (PAGE - 12) * 32 // 255 - 23, PAGE - 4
SUM = 4  # bytes of the checksum behind the records of a block
HEADER = 16 + SUM  # of a row: sizes and types of its columns, and that
DIRTY = 6
LARGEST_BLOCK = 512  # records

_TABLES = """
CREATE TABLE block(id INTEGER PRIMARY KEY, records BLOB NOT NULL);
CREATE TABLE memory(
    id INTEGER PRIMARY KEY CHECK (id = 1),
    turn INTEGER NOT NULL, codec TEXT NOT NULL, seen TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How records lie in a file.

    Attributes:
        record: Bytes of one.
        size: Records of a block.
        capacity: Records of the file.
    """

    record: int
    size: int
    capacity: int

    @classmethod
    def within(cls, record: int, limit: int) -> Self:
        """The blocks that hold most records in ``limit`` bytes of pages."""
        fitting = [
            size
            for size in range(1, LARGEST_BLOCK + 1)
            if size == 1 or _pages(size * record) <= DIRTY
        ]
        shares = [_pages(size * record) / size for size in fitting]
        # The smallest that wastes little: a block is written as a whole.
        enough = min(shares) * 1.05
        size = next(
            n for n, share in zip(fitting, shares, strict=True) if share <= enough
        )
        pages = _pages(size * record)
        # A page is begun for what is left of the limit.  The journal of a record beyond
        # DIRTY pages comes out of it, as do the inner pages of the tree.
        room = limit // PAGE + 1 - max(pages - DIRTY, 0)
        room -= room // 256
        capacity = min(max(room // pages, 0) * size, limit // record)
        return cls(record, size, capacity)

    def of(self, slots: Iterable[int]) -> list[int]:
        """The blocks of slots, in order."""
        return sorted({slot // self.size for slot in slots})

    @property
    def at_once(self) -> int:
        """Blocks of one transaction."""
        return max(DIRTY // _pages(self.size * self.record), 1)


class Contents(NamedTuple):
    """What a file held when it was opened."""

    codec: str
    seen: dict[int, int]
    records: bytes


class Store:
    """The file.

    Args:
        path: Where; made where there is none.

    Raises:
        CheckpointError: The file is damaged, or is no such store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._turn = path, 0
        with self._told():
            # SQLite itself takes calls of any thread; a learner makes one at a time.
            self._file = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False
            )
        try:
            with self._told():
                self._begin()
        except CheckpointError:
            self._file.close()
            raise

    def read(self) -> Contents | None:
        """All that it holds; None for a new one.

        Raises:
            CheckpointError: The file is damaged.
        """
        with self._told():
            found = self._file.execute(
                "SELECT turn, codec, seen FROM memory"
            ).fetchone()
            if found is None:
                return None
            self._turn, codec, seen = found
            rows = self._file.execute(
                "SELECT id, records FROM block ORDER BY id"
            ).fetchall()
            if [number for number, _ in rows] != list(range(len(rows))):
                raise ValueError("blocks are missing")
            records = b"".join(_opened(*row) for row in rows)
            counts = {int(key): int(count) for key, count in json.loads(seen).items()}
            if not isinstance(self._turn, int) or min(counts.values(), default=0) < 0:
                raise ValueError("what was counted is no number")
            return Contents(str(codec), counts, records)

    def create(self, codec: str) -> None:
        """Begin to hold examples that ``codec`` describes."""
        with self._told(), self._whole():
            begun = "INSERT OR IGNORE INTO memory VALUES(1, 0, ?, '{}')"
            if self._file.execute(begun, (codec,)).rowcount != 1:
                raise self._taken()

    def write(self, blocks: Mapping[int, bytes], seen: Mapping[int, int]) -> None:
        """Store some blocks and what was seen so far, in one transaction.

        Raises:
            CheckpointError: It cannot be written, or another process writes to it.
        """
        text = json.dumps(dict(sorted(seen.items())))
        with self._told(), self._whole():
            done = self._file.execute(
                "UPDATE memory SET turn = turn + 1, seen = ? WHERE turn = ?",
                (text, self._turn),
            )
            if done.rowcount != 1:
                raise self._taken()
            self._file.executemany(
                "INSERT INTO block VALUES(?, ?) "
                "ON CONFLICT(id) DO UPDATE SET records = excluded.records",
                [(number, _closed(number, own)) for number, own in blocks.items()],
            )
        self._turn += 1

    def _taken(self) -> CheckpointError:
        return CheckpointError(
            f"{self._path}: another learner wrote to this store; give each one its own"
        )

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def _begin(self) -> None:
        """Check a file, or make it."""
        run = self._file.execute
        run(f"PRAGMA page_size = {PAGE}")
        run("PRAGMA journal_mode = DELETE")
        (version,) = run("PRAGMA user_version").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_schema").fetchone()
        if not version and not tables:
            with self._whole():
                for statement in filter(str.strip, _TABLES.split(";")):
                    run(statement)
                run(f"PRAGMA user_version = {VERSION}")
            return
        if version != VERSION:
            raise CheckpointError(
                f"{self._path}: want a store of version {VERSION}, not of {version}"
            )
        (verdict,) = run("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise CheckpointError(f"{self._path}: the store is damaged: {verdict}")

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A transaction: all of it, or nothing."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:  # an interrupt, too, leaves no half of a transaction
            if self._file.in_transaction:  # a full disk has ended it already
                self._file.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite as ours."""
        try:
            yield
        except sqlite3.OperationalError as error:  # of the disk, or a lock
            raise CheckpointError(
                f"{self._path}: the store cannot be used: {error}"
            ) from error
        except (sqlite3.Error, *DAMAGED) as error:
            raise CheckpointError(
                f"{self._path}: the store cannot be used: {error}; move it away to "
                "begin a new one"
            ) from error


def _closed(number: int, records: bytes) -> bytes:
    """A block with its checksum, which counts its number in."""
    return records + zlib.crc32(records, number).to_bytes(SUM, "little")


def _opened(number: int, block: bytes) -> bytes:
    """The records of a block.

    Raises:
        ValueError: They are not those that were written.
    """
    records = block[:-SUM]
    if _closed(number, records) != block:
        raise ValueError(f"block {number} is not what was written")
    return records


def _pages(size: int) -> int:
    """Pages of a row whose blob has ``size`` bytes, at most."""
    size += HEADER
    return 1 if size <= LOCAL else 1 + -(-(size - SPILLED) // OVERFLOW)
