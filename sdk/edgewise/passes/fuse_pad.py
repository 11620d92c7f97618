"""Padding moves into the window operator that reads it, where that is exact."""

from __future__ import annotations

import math
from typing import Any

from edgewise.ir.graph import Value
from edgewise.ir.pattern import a
from edgewise.ops.activation import Relu
from edgewise.ops.choose import Clip
from edgewise.ops.conv import Conv, DepthwiseConv
from edgewise.ops.pad import Pad
from edgewise.ops.pool import AveragePool, MaxPool
from edgewise.passes.rewrite import rule

CONVOLUTIONS = (Conv, DepthwiseConv)


def _margins(padding: Value, value: float) -> tuple[int, ...] | None:
    """Top, left, bottom, right that a pad adds around an image, all with ``value``."""
    op = padding.op
    if not isinstance(op, Pad) or op.mode != "constant" or op.value != value:
        return None
    pads = op.pads
    if len(pads) != 8 or any(pads[i] != 0 for i in (0, 3, 4, 7)):
        return None
    found = tuple(pad for pad in (pads[1], pads[2], pads[5], pads[6]))
    if not all(isinstance(pad, int) and pad >= 0 for pad in found):
        return None
    return tuple(pad for pad in found if isinstance(pad, int))


def _padded(root: Value, x: Value, margins: tuple[int, ...], **more: bool) -> Value:
    op: Any = root.op
    pads = tuple(own + more for own, more in zip(op.pads, margins, strict=True))
    result: Value = op.replace(pads=pads, **more)(x, *root.node.inputs[1:])
    return result


@rule(a(CONVOLUTIONS, a(Pad, "x", name="padding"), ..., name="root"))
def padded_convolution(x: Value, padding: Value, root: Value) -> Value | None:
    """Zeros around a convolution's input."""
    margins = _margins(padding, 0.0)
    return None if margins is None else _padded(root, x, margins)


@rule(a(AveragePool, a(Pad, "x", name="padding"), name="root"))
def padded_average(x: Value, padding: Value, root: Value) -> Value | None:
    """Zeros that count, before a pool that adds none of its own."""
    op, margins = root.op, _margins(padding, 0.0)
    if margins is None or not isinstance(op, AveragePool) or any(op.pads):
        return None
    return _padded(root, x, margins, count_include_pad=True)


@rule(a(MaxPool, a(Pad, "x", name="padding"), name="root"))
def padded_maximum(x: Value, padding: Value, root: Value) -> Value | None:
    """What cannot win: minus infinity, or zeros around what is not negative."""
    op, margins = root.op, _margins(padding, -math.inf)
    if margins is None and _not_negative(x):
        margins = _margins(padding, 0.0)
    if margins is None or not isinstance(op, MaxPool):
        return None
    pads = [own + more for own, more in zip(op.pads, margins, strict=True)]
    # A window over padding alone would have nothing to choose from.
    spans = [(k - 1) * d + 1 for k, d in zip(op.kernel, op.dilations, strict=True)]
    if any(pad >= span for pad, span in zip(pads, spans * 2, strict=True)):
        return None
    return _padded(root, x, margins)


def _not_negative(x: Value) -> bool:
    op = x.op
    if isinstance(op, Clip):
        return op.low >= 0
    return isinstance(op, Relu)


RULES = (padded_convolution, padded_average, padded_maximum)
