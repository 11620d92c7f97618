"""Packed weights as they were: parameters by their names, others unpacked by nodes."""

from __future__ import annotations

import math

import numpy as np

from edgewise.convert.to_onnx.registry import Written, writes
from edgewise.convert.to_onnx.writer import At
from edgewise.ir.graph import Constant, Value, Variable
from edgewise.named import NamedTuple
from edgewise.ops.pack import PANEL, PackPanels, PackTaps, matrices
from edgewise.types import TensorType


class Source(NamedTuple):
    """What was packed.

    Attributes:
        name: Of the tensor before it was packed.
        type: Its type.
        packing: How it was packed.
    """

    name: str
    type: TensorType
    packing: PackPanels | PackTaps


def source(at: At, value: Value) -> Source | None:
    """What a packed weight was made of, if that is known."""
    op = value.op
    if isinstance(op, Variable):
        info = at.writer.module.variables[op.key]
        if isinstance(info.packing, PackPanels | PackTaps):
            return Source(op.key, info.logical, info.packing)
    if isinstance(op, PackPanels | PackTaps):
        inner = value.node.inputs[0]
        if inner is not None:
            return Source(at.writer.name(inner), inner.type, op)
    return None


def unpacked(at: At, value: Value, columns: int, batch: int) -> str:
    """``[batch, K, columns]`` from panels."""
    if isinstance(value.op, Constant):
        return at.writer.constant(matrices(value.op.array, columns))
    each, reduced = -(-columns // PANEL), value.type.dims[1]
    tiles = at.reshaped(at.writer.name(value), batch, each, reduced, PANEL)
    turned = at.emit("Transpose", tiles, perm=[0, 2, 1, 3])
    rows = at.reshaped(turned, batch, reduced, each * PANEL)
    ends = (at.integers(0), at.integers(columns), at.integers(2))
    return at.emit("Slice", rows, *ends)


def matrix(at: At, value: Value, columns: int) -> tuple[str, bool]:
    """A weight ``[K, columns]``, or the other way round and ``True``."""
    found = source(at, value)
    if found is None or not isinstance(found.packing, PackPanels):
        rows = unpacked(at, value, columns, 1)
        return at.reshaped(rows, value.type.dims[1], columns), False
    if found.packing.axes == (0, 1):
        return found.name, False
    if found.packing.axes == (1, 0):
        return found.name, True
    turned = at.emit("Transpose", found.name, perm=list(found.packing.axes))
    return at.reshaped(turned, value.type.dims[1], columns), False


def window(at: At, value: Value, kernel: tuple[int, ...], channels: int) -> str:
    """A weight ``[O, C / groups, h, w]`` of a convolution."""
    found, groups = source(at, value), at.op.groups
    inputs = value.type.dims[1] // int(np.prod(kernel))
    if found is None or not isinstance(found.packing, PackPanels):
        each = channels // groups
        rows = unpacked(at, value, each, groups)
        rows = at.reshaped(rows, groups, *kernel, inputs, each)
        turned = at.emit("Transpose", rows, perm=[0, 4, 3, 1, 2])
        return at.reshaped(turned, channels, inputs, *kernel)
    axes = found.packing.axes
    if axes == (2, 3, 1, 0):
        return found.name
    if axes == (2, 1, 0) and kernel[0] == 1:  # along a line
        return at.emit("Unsqueeze", found.name, at.integers(2))
    turned = at.emit("Transpose", found.name, perm=list(axes))
    rows = at.reshaped(turned, *kernel, inputs, channels)
    return at.emit("Transpose", rows, perm=[3, 2, 0, 1])


def taps(at: At, value: Value, kernel: tuple[int, ...]) -> str:
    """A weight ``[C, 1, h, w]`` of a convolution channel by channel."""
    found = source(at, value)
    if found is not None:
        return found.name
    turned = at.emit("Transpose", at.writer.name(value), perm=[1, 0])
    return at.reshaped(turned, value.type.dims[1], 1, *kernel)


def gates(at: At, value: Value, width: int, ways: int) -> str:
    """A weight ``[ways, width, K]`` of a recurrent layer."""
    found = source(at, value)
    if found is not None and found.packing == PackPanels((0, 2, 1), 1, 1):
        return found.name
    if found is not None and found.packing == PackPanels((0, 1, 2), 1, 1):
        return at.emit("Transpose", found.name, perm=[0, 2, 1])
    rows = unpacked(at, value, width, ways)
    return at.emit("Transpose", rows, perm=[0, 2, 1])


@writes(PackPanels)
def pack_panels(at: At) -> Written:
    """Panels themselves, where something reads them as they are."""
    op = at.op
    shape = [at.x.type.dims[axis] for axis in op.axes]
    head, columns = shape[: op.batch], shape[-1]
    outer, each = math.prod(head), columns // op.groups
    count, reduced = -(-each // PANEL), math.prod(shape[op.batch : -1])
    turned = at.emit("Transpose", at.name(0), perm=list(op.axes))
    rows = at.reshaped(turned, outer, reduced, op.groups, each)
    rows = at.emit("Transpose", rows, perm=[0, 2, 1, 3])
    pads = at.integers(*(0,) * 7, count * PANEL - each)
    wide = at.emit("Pad", rows, pads)
    tiles = at.reshaped(wide, outer * op.groups, reduced, count, PANEL)
    tiles = at.emit("Transpose", tiles, perm=[0, 2, 1, 3])
    return at.reshaped(tiles, outer * op.groups * count, reduced, PANEL)


@writes(PackTaps)
def pack_taps(at: At) -> Written:
    """A row for each tap."""
    channels, _, height, width = at.x.type.dims
    rows = at.reshaped(at.name(0), channels, height * width)
    return at.emit("Transpose", rows, perm=[1, 0])
