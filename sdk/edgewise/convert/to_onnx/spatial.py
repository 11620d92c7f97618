"""Pools over images."""

from __future__ import annotations

from typing import Any

from edgewise.convert.to_onnx.registry import Image, Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.ops.pool import AveragePool, MaxPool


def windows(op: Any) -> dict[str, Any]:
    """The window of an op as attributes."""
    return {
        "kernel_shape": list(op.kernel),
        "strides": list(op.strides),
        "pads": list(op.pads),
        "dilations": list(op.dilations),
    }


@writes(MaxPool)
def max_pool(at: At) -> Written:
    """The largest of each window."""
    return Image(at.emit("MaxPool", at.image(0), **windows(at.op)))


@writes(AveragePool)
def average_pool(at: At) -> Written:
    """The mean of each window."""
    counted = int(at.op.count_include_pad)
    more = windows(at.op) | {"count_include_pad": counted}
    return Image(at.emit("AveragePool", at.image(0), **more))
