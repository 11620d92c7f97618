"""Numbers that a model stores: of scales, zero points, biases and whole weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edgewise.ir.graph import Constant, Value, Variable
from edgewise.ir.module import VariableInfo
from edgewise.ir.op import Array
from edgewise.ir.reference import outputs
from edgewise.ops.binary import Add, Div, Mul, Sub
from edgewise.ops.choose import Cast
from edgewise.ops.create import Fill
from edgewise.ops.quantize import Dequantize, Quantize
from edgewise.ops.shape import Expand, Reshape, Slice, Transpose

FORMULAS = (
    *(Add, Cast, Dequantize, Div, Expand, Fill, Mul, Quantize, Reshape, Sub, Transpose),
)
MOVES = (Reshape, Slice, Transpose)


class Whole(NamedTuple):
    """A stored weight ``whole * scale``.

    Attributes:
        key: Name of the tensor that holds it.
        whole: Whole numbers, their zero point taken off.
        scale: Of every element, broadcast to their shape.
    """

    key: str
    whole: Array
    scale: Array


class Known:
    """What constants and stored variables decide, computed once for each value."""

    def __init__(self, variables: Mapping[str, VariableInfo]) -> None:
        self._variables = variables
        self._found: dict[Value, Array | None] = {}

    def array(self, value: Value | None) -> Array | None:
        """The numbers of ``value``; ``None`` where a run decides them."""
        if value is None:
            return None
        if value not in self._found:
            self._found[value] = self._computed(value)
        return self._found[value]

    def number(self, value: Value | None) -> float | None:
        """The only one, exactly; ``None`` where there are others."""
        array = self.array(value)
        if array is None or array.size != 1:
            return None
        return float(array.reshape(()))

    def whole(self, value: Value | None) -> Whole | None:
        """The weight that ``value`` is, perhaps in another shape or order."""
        if value is None:
            return None
        if isinstance(value.op, Dequantize):
            q, scale, zero = value.node.inputs
            arrays = [self.array(each) for each in (q, scale, zero)]
            return None if q is None else _weight(value.op, q, arrays)
        if not isinstance(value.op, MOVES) or not value.type.is_static:
            return None
        inner = self.whole(value.node.inputs[0])
        if inner is None:
            return None
        moved = [np.asarray(value.op.reference(x)) for x in inner[1:]]
        return Whole(inner.key, *moved)

    def _computed(self, value: Value) -> Array | None:
        op = value.op
        if isinstance(op, Constant):
            return op.array
        if isinstance(op, Variable):
            info = self._variables.get(op.key)
            return None if info is None or info.packing else info.initial
        if not isinstance(op, FORMULAS) or not value.type.is_static:
            return None
        inputs = [self.array(each) for each in value.node.inputs]
        if any(each is None for each in inputs):
            return None
        return np.asarray(outputs(op, inputs, value.node.types)[value.index])


def _weight(op: Dequantize, q: Value, arrays: list[Array | None]) -> Whole | None:
    whole, scale, zero = arrays
    if whole is None or scale is None or zero is None:
        return None
    shape = whole.shape
    moved = whole.astype(np.int32) - op.along(zero, shape).astype(np.int32)
    wide = np.broadcast_to(op.along(scale, shape), shape)
    return Whole(_key(q), moved, wide.astype(np.float32))


def _key(q: Value) -> str:
    """The name of stored whole numbers, or of the fractions that they are made of."""
    source = q.node.inputs[0] if isinstance(q.op, Quantize) else None
    if source is not None and isinstance(source.op, Variable):
        return f"{source.op.key}/quantized"
    return q.node.label
