"""Tensor data in files beside the model: nothing outside its folder is ever read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto

from edgewise.convert.source import Parsed
from edgewise.ir.op import Array


def external_bytes(parsed: Parsed, tensor: TensorProto, where: str) -> Array:
    """The bytes that a tensor says lie in another file, mapped and not copied."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(parsed, entries.get("location", ""), where)
    try:
        size = path.stat().st_size
        offset, length = _range(parsed, entries, size, where)
        if length == 0:
            return np.zeros(0, np.uint8)
        return np.memmap(path, np.uint8, "r", offset, (length,))
    except OSError as error:
        raise parsed.error(
            f"{where} lies in {path.name!r}, which cannot be read:"
            f" {error.strerror or error}"
        ) from error


def _range(
    parsed: Parsed, entries: dict[str, str], size: int, where: str
) -> tuple[int, int]:
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size - offset))
    except ValueError as error:
        raise parsed.error(f"{where} has no numbers for its external range") from error
    # Python's integers do not wrap, so the sum may be compared as it stands.
    if offset < 0 or length < 0 or offset + length > size:
        raise parsed.error(
            f"{where} wants bytes {offset} to {offset + length} of a file of {size}"
        )
    return offset, length


def _inside(parsed: Parsed, location: str, where: str) -> Path:
    """The file called ``location``, which must lie in the model's own folder."""
    if parsed.folder is None:
        raise parsed.error(
            f"{where} lies in another file ({location!r}): convert from a path"
        )
    try:
        folder = parsed.folder.resolve()
        path = (folder / location).resolve()
        regular = path.is_file()  # no device, no pipe
    except (OSError, ValueError, RuntimeError) as error:
        # Too long, a zero byte, links in a circle.
        raise parsed.error(
            f"{where} lies in {location[:80]!r}, which names no file"
        ) from error
    if not location or not path.is_relative_to(folder):
        raise parsed.error(
            f"{where} lies outside the model's folder ({location!r}); want it beside"
            " the model"
        )
    if not regular:
        raise parsed.error(f"{where} lies in {location!r}, which is not there")
    return path
