"""An ONNX model from a path, bytes or a proto; what surrounds its graph is checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import onnx
from google.protobuf.message import (  # type: ignore[import-untyped]  # has no stubs
    DecodeError,
)

from edgewise.convert.screen import want_sane
from edgewise.convert.wire import WireError, measure
from edgewise.errors import ConfigError, ModelFormatError
from edgewise.format.foreign import advice

MODEL_SUFFIX = ".onnx"
MAX_FILE = (1 << 31) - 1  # bytes: what protobuf takes
NEWEST_OPSET = 28  # the newest whose operator texts the importer was written from
MAIN_DOMAINS = ("", "ai.onnx")

Source: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto"
)


class Parsed(NamedTuple):
    """A parsed model and where it came from.

    Attributes:
        model: The message.
        folder: Where external data may lie; ``None`` for models in memory.
        path: For messages; empty for models in memory.
    """

    model: onnx.ModelProto
    folder: Path | None
    path: str

    def error(self, reason: str) -> ModelFormatError:
        """The error for a defect of this model; the caller raises it."""
        return ModelFormatError(self.path, reason)


def read(source: Source) -> Parsed:
    """The parsed model, of a version known to be readable."""
    if isinstance(source, onnx.ModelProto):
        parsed = Parsed(source, None, "")
    elif isinstance(source, bytes | bytearray | memoryview):
        parsed = Parsed(_parse(bytes(source), ""), None, "")
    elif not isinstance(source, str | os.PathLike):
        raise ConfigError(
            f"got {type(source).__name__}; want the path of an ONNX model, its bytes,"
            " or an onnx.ModelProto"
        )
    else:
        path = Path(source)
        parsed = Parsed(_parse(_bytes(path), path), path.resolve().parent, str(path))
    want_sane(parsed.path, parsed.model)
    if not parsed.model.HasField("graph"):
        raise parsed.error("holds no graph: not an ONNX model")
    opset(parsed)
    return parsed


def opset(parsed: Parsed) -> int:
    """Version of the main operator set that the model uses."""
    return versions(parsed, parsed.model.opset_import)[""]


def versions(
    parsed: Parsed, imports: Iterable[onnx.OperatorSetIdProto]
) -> dict[str, int]:
    """Versions of operator sets by domain; the main one is called ``""``."""
    found = {entry.domain: int(entry.version) for entry in imports}
    if not all(0 <= version < 1 << 31 for version in found.values()):
        raise parsed.error(f"uses operator sets of no version that can be: {found}")
    main = [found.pop(name) for name in MAIN_DOMAINS if name in found]
    if not main and not found and parsed.model.ir_version >= 3:
        raise parsed.error("does not say which operator set it uses")
    version = main[0] if main else 1
    if not 1 <= version <= NEWEST_OPSET:
        raise parsed.error(
            f"uses operator set {version}; edgewise reads 1 to {NEWEST_OPSET}: export"
            " the model with an older one, or update edgewise"
        )
    return {**found, "": version}


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # a device may never end
            raise ModelFormatError(path, "is no regular file")
        size = path.stat().st_size
        if size > MAX_FILE:
            raise ModelFormatError(
                path,
                f"has {size} bytes; ONNX files hold at most {MAX_FILE}, and weights"
                " beyond that lie beside them as external data",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a zero byte in a path is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFormatError(path, f"cannot be read: {reason}") from error


def _parse(data: bytes, path: object) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        measure(data, model.DESCRIPTOR)
        model.ParseFromString(data)
    except WireError as error:
        reason = advice(data, "onnx") or f"is not an ONNX model: {error}"
        raise ModelFormatError(path, reason) from error
    except DecodeError as error:
        raise ModelFormatError(
            path, "is not an ONNX model, or is cut short: its message does not parse"
        ) from error
    return model
