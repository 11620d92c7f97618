"""What the first bytes of a file that is no model tell, and what to do about it."""

from __future__ import annotations

import re
from typing import Literal

from edgewise.format._generated.schema import IDENTIFIER

KINDS = (
    (
        rb"\s*(<!doctype|<html|<\?xml|<head|<body)",
        "is a web page: fetch the file that the page links to",
    ),
    (
        rb"version https://git-lfs",
        "is a pointer of Git LFS: fetch the file itself with `git lfs pull`",
    ),
    (rb"\x1f\x8b|PK\x03\x04", "is an archive: unpack it first"),
)
START = 32  # bytes that tell
# The version of the format (field 1), and another field of a model or its end.
ONNX = rb"\x08[\x01-\x1f]([\x12\x1a\x22\x2a\x32\x3a\x42]|\x28.|$)"


def advice(start: bytes, wanted: Literal["onnx", "ew"]) -> str:
    """What a file is that begins like this, if it is known; else an empty text."""
    start = start[:START]
    for pattern, text in KINDS:
        if re.match(pattern, start, re.IGNORECASE):
            return text
    if wanted == "onnx" and start[8:12] == IDENTIFIER:
        return "is an .ew file, already converted: load it with edgewise.load"
    if wanted == "ew" and re.match(ONNX, start, re.DOTALL):
        return "is an ONNX model: convert it first, as with `edgewise convert`"
    return ""
