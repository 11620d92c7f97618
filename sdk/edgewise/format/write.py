"""A module to a file, whole or not at all."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from flatbuffers.builder import BuilderSizeError

from edgewise.errors import EdgewiseError, ModelFormatError
from edgewise.format._generated.schema import IDENTIFIER
from edgewise.format.arrays import Buffer
from edgewise.format.build import build
from edgewise.format.container import aligned, seal
from edgewise.format.flatten import flatten
from edgewise.format.read import read, want_path
from edgewise.format.whole import replace
from edgewise.ir.module import Module


def write(module: Module, path: str | os.PathLike[str]) -> None:
    """Write ``module`` to ``path``; equal modules give equal bytes.

    The file appears under its name when it is complete, on disk and has been read back;
    until then, and after any failure, what was there before stays as it was.

    Raises:
        EdgewiseError: The file cannot be written, or cannot hold the module.
    """
    want_path(path)
    chunks = _chunks(module)
    try:
        replace(_target(path), lambda file: file.writelines(chunks), read)
    except OSError as error:
        reason = error.strerror or error
        raise EdgewiseError(f"{path}: cannot be written: {reason}") from error
    except ModelFormatError as error:
        raise EdgewiseError(f"{path}: cannot be written: {error.reason}") from error


def write_bytes(module: Module) -> bytes:
    """The bytes that ``write`` would put in a file."""
    return b"".join(_chunks(module))


def _chunks(module: Module) -> list[Buffer]:
    flat = flatten(module)
    try:
        header = build(flat.model, IDENTIFIER)
    except (struct.error, UnicodeEncodeError, BuilderSizeError) as error:
        raise EdgewiseError(f"no file can hold the module: {error}") from error
    chunks: list[Buffer] = [seal(header)]
    for payload in flat.payloads:
        chunks += [payload, bytes(aligned(len(payload)) - len(payload))]
    return chunks


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that links lead to: it is replaced, not the link."""
    try:
        return Path(path).resolve()
    except (RuntimeError, ValueError) as error:  # links in a circle; a null
        raise OSError(0, str(error)) from None
