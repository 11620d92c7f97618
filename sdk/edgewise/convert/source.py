"""An ONNX model from a path, bytes or a proto; what surrounds its graph is checked."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeAlias

import onnx
from google.protobuf.message import (  # type: ignore[import-untyped]  # has no stubs
    DecodeError,
)

from edgewise.errors import ModelFormatError

MODEL_SUFFIX = ".onnx"
NEWEST_OPSET = 28  # the newest whose operator texts the importer was written from
MAIN_DOMAINS = ("", "ai.onnx")

Source: TypeAlias = "str | Path | bytes | onnx.ModelProto"


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
    """The parsed model; its functions inlined, its versions known to be readable."""
    if isinstance(source, onnx.ModelProto):
        parsed = Parsed(source, None, "")
    elif isinstance(source, bytes):
        parsed = Parsed(_parse(source, ""), None, "")
    else:
        path = Path(source)
        parsed = Parsed(_parse(_bytes(path), path), path.resolve().parent, str(path))
    if not parsed.model.HasField("graph"):
        raise parsed.error("holds no graph: not an ONNX model")
    opset(parsed)
    if parsed.model.functions:
        return _inline(parsed)
    return parsed


def opset(parsed: Parsed) -> int:
    """Version of the main operator set that the model uses."""
    versions = {entry.domain: entry.version for entry in parsed.model.opset_import}
    version = next((versions[name] for name in MAIN_DOMAINS if name in versions), None)
    if version is None:
        if parsed.model.ir_version >= 3 and not versions:
            raise parsed.error("does not say which operator set it uses")
        version = 1
    if not 1 <= version <= NEWEST_OPSET:
        raise parsed.error(
            f"uses operator set {version}; edgewise reads 1 to {NEWEST_OPSET}"
        )
    return int(version)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelFormatError(path, f"cannot be read: {reason}") from error


def _parse(data: bytes, path: object) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ModelFormatError(
            path, "is not an ONNX model, or is cut short: its message does not parse"
        ) from error
    return model


def _inline(parsed: Parsed) -> Parsed:
    import onnx.inliner  # noqa: PLC0415 - few models have functions of their own

    try:
        model = onnx.inliner.inline_local_functions(parsed.model)
    except (RuntimeError, ValueError) as error:
        raise parsed.error(f"has functions that cannot be inlined: {error}") from error
    return parsed._replace(model=model)
