"""A file to a module: mapped, verified, and only then believed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from edgewise.errors import ConfigError, ModelFormatError
from edgewise.format._generated import schema
from edgewise.format.container import (
    Contents,
    open_file,
    split,
    want_checksums,
    want_segments,
)
from edgewise.format.records import Record
from edgewise.format.restore import restore
from edgewise.format.tables import DamageError, Decoder
from edgewise.format.versions import FEATURES, FORMAT_VERSION
from edgewise.ir.module import Module

MAX_REASON = 500


class Stamp(Record):
    """The part of the root that every version can read."""

    format_version: int = 0
    features: tuple[str, ...] = ()
    min_version: str
    producer: str = ""

    fields = schema.Model.fields[:4]


def read(path: str | os.PathLike[str]) -> Module:
    """The module in a file; its arrays are views of the map.

    Replacing the file is safe; whoever cuts it short while it is mapped stops the
    process that reads beyond its end.

    Raises:
        ModelFormatError: The file cannot be opened, is damaged, or is too new.
    """
    with _named(path):
        contents = open_file(path)
        return restore(_tables(contents), contents)


def read_bytes(data: bytes) -> Module:
    """The module in the bytes of a file.

    Raises:
        ModelFormatError: They are damaged or too new.
    """
    with _named(""):
        contents = split(memoryview(data))
        return restore(_tables(contents), contents)


def check(path: str | os.PathLike[str]) -> None:
    """Read a file as ``read`` does and compare all of its bytes with their checksums.

    Raises:
        ModelFormatError: Something is wrong with it.
    """
    with _named(path):
        contents = open_file(path)
        tables = _tables(contents)
        restore(tables, contents)
        want_checksums(contents, tables.segments)


def want_path(path: object) -> None:
    """Raise ``ConfigError`` unless it is a path."""
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"got {type(path).__name__}; want the path of an .ew file")


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what may go wrong with a file into the error that names it."""
    want_path(path)
    try:
        yield
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise ModelFormatError(os.fspath(path), reason) from error
    except DamageError as damage:
        reason = " ".join(str(damage).split())[:MAX_REASON]
        raise ModelFormatError(os.fspath(path), reason) from None


def _tables(contents: Contents) -> schema.Model:
    stamp = Decoder(contents.header).root(Stamp, 4)
    unknown = sorted(set(stamp.features) - FEATURES)
    if stamp.format_version > FORMAT_VERSION or unknown:
        needs = f"format {stamp.format_version} {', '.join(unknown)}".strip()
        raise DamageError(
            f"needs {needs}; this edgewise reads format {FORMAT_VERSION}: "
            f"update to edgewise {stamp.min_version} or newer"
        )
    if stamp.format_version < 1:
        raise DamageError("has no format version")
    tables = Decoder(contents.header).root(schema.Model, 4)
    want_segments(tables.segments, len(contents.data))
    return tables
