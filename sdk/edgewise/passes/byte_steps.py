"""Steps between products, over the bytes that their numbers stand for.

Sums and products of two images, means, and any function of one number: that one is a
table of what each byte becomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from edgewise.ir.graph import Node, Value, constant
from edgewise.ir.op import Array
from edgewise.ir.reference import outputs
from edgewise.ops.activation import Activated, Prelu, Relu
from edgewise.ops.binary import Add, Div, Maximum, Minimum, Mul, Pow, Sub
from edgewise.ops.byte_between import (
    ByteAdd,
    ByteAveragePool,
    ByteMean,
    ByteMul,
    ByteTable,
)
from edgewise.ops.choose import Clip
from edgewise.ops.pool import AveragePool
from edgewise.ops.quantize import Dequantize, Quantize, limits
from edgewise.ops.reduce import ReduceMean
from edgewise.ops.shape import Concat, Reshape, Transpose
from edgewise.ops.unary import Unary
from edgewise.passes.known import Known
from edgewise.types import DType, TensorType

FUNCTIONS = (Unary, Activated, Clip)
JOINED = (Add, Div, Maximum, Minimum, Mul, Pow, Prelu, Sub)
IMAGE = 4  # axes
SPATIAL = ((1, 2), (2, 3))  # with channels last, and second
LONGEST = 32  # nodes of a function


class Pair(NamedTuple):
    """What bytes stand for: ``(q - zero) * scale``."""

    dtype: DType
    scale: float
    zero: int

    def numbers(self) -> Array:
        """What every byte stands for, as ``byte_table`` counts them."""
        every = np.arange(256).astype(np.uint8).view(self.dtype.numpy)
        return Dequantize().reference(every, *self._arrays())

    def bytes_of(self, real: Array) -> Array:
        """The bytes of real numbers."""
        return Quantize().reference(real.astype(np.float32), *self._arrays())

    def ends(self) -> tuple[float, float]:
        """The least and the largest number."""
        low, high = limits(self.dtype)
        return (low - self.zero) * self.scale, (high - self.zero) * self.scale

    def values(self) -> tuple[Value, Value]:
        """Scale and zero point as constants."""
        scale, zero = self._arrays()
        return constant(scale), constant(zero)

    def _arrays(self) -> tuple[Array, Array]:
        zero = np.asarray(self.zero, self.dtype.numpy)
        return np.asarray(self.scale, np.float32), zero


class Bytes(NamedTuple):
    """Bytes, and what they stand for."""

    value: Value
    pair: Pair


Found: TypeAlias = Mapping[Value, Bytes]


def step(node: Node, given: list[Bytes], made: Pair) -> Value | None:
    """A node that is given bytes, as one that makes them; ``None`` for other nodes."""
    ending: dict[str, Any] = {"y_type": made.dtype.value}
    ending |= {"y_scale": made.scale, "y_zero": made.zero}
    if isinstance(node.op, Add | Mul) and len(given) == len(node.inputs):
        return _joined(node, given, ending)
    if is_mean(node):
        return _mean(node, given, ending)
    if isinstance(node.op, FUNCTIONS) and len(node.inputs) == 1:
        (x,) = given
        numbers = np.asarray(node.op.reference(x.pair.numbers()))
        return table(x.value, made.bytes_of(numbers), node.label)
    return None


def table(x: Value, bytes_: Array, label: str = "") -> Value:
    """What each byte of ``x`` becomes."""
    result: Value = ByteTable()(x, constant(bytes_), label=label)
    return result


def is_mean(node: Node) -> bool:
    """Whether a node takes means of windows of an image, or of all of it."""
    op, x = node.op, node.inputs[0] if node.inputs else None
    if isinstance(op, ReduceMean):
        return x is not None and x.type.rank == IMAGE and op.axes in SPATIAL
    return isinstance(op, AveragePool)


def _joined(node: Node, given: list[Bytes], ending: dict[str, Any]) -> Value | None:
    a, b = given
    if a.pair.dtype is not b.pair.dtype:
        return None
    op = ByteAdd if isinstance(node.op, Add) else ByteMul
    (_, a_scale, a_zero), (_, b_scale, b_zero) = a.pair, b.pair
    pairs = {"a_scale": a_scale, "a_zero": a_zero}
    pairs |= {"b_scale": b_scale, "b_zero": b_zero}
    result: Value = op(**ending, **pairs)(a.value, b.value, label=node.label)
    return result


def _mean(node: Node, given: list[Bytes], ending: dict[str, Any]) -> Value:
    op: Any = node.op
    (x,) = given
    ending |= {"x_scale": x.pair.scale, "x_zero": x.pair.zero}
    if isinstance(op, AveragePool):
        names = ("kernel", "strides", "pads", "dilations", "count_include_pad")
        window = {name: getattr(op, name) for name in names}
        pooled: Value = ByteAveragePool(**ending, **window)(x.value, label=node.label)
        return pooled
    image, shape = x.value, Value(node).type.shape
    if op.axes == SPATIAL[1]:
        image = Transpose((0, 2, 3, 1))(image)
    mean: Value = ByteMean(**ending)(image, label=node.label)
    if mean.type.shape == shape:
        return mean
    moved: Value = Reshape(shape)(mean)
    return moved


def bytes_of(real: Value, made: Pair, known: Known, found: Found) -> Value | None:
    """The bytes of ``real``, made of those that it is computed of.

    Args:
        real: Real numbers that nothing reads but what quantises them.
        made: What the bytes are to stand for.
        known: What is stored.
        found: Bytes behind real numbers.
    """
    real = _held_anyway(real, made)
    if real in found and found[real].pair == made:
        return found[real].value
    node = real.node
    given = [found[v] for v in node.inputs if v is not None and v in found]
    if isinstance(node.op, Concat):
        return _side_by_side(node, given, made)
    whole = len(given) == len(node.inputs)
    result = step(node, given, made) if whole and given else None
    return result or _function(real, made, known, found)


def _held_anyway(real: Value, made: Pair) -> Value:
    """Without bounds that bytes are held to anyway."""
    low, high = made.ends()
    while isinstance(real.op, Relu | Clip):
        bounds = (0.0, np.inf)
        if isinstance(real.op, Clip):
            bounds = real.op.low, real.op.high
        source = real.node.inputs[0]
        if source is None or not (bounds[0] <= low and high <= bounds[1]):
            break
        real = source
    return real


def _side_by_side(node: Node, given: list[Bytes], made: Pair) -> Value | None:
    if len(given) != len(node.inputs):
        return None
    parts = [
        x.value if x.pair == made else table(x.value, made.bytes_of(x.pair.numbers()))
        for x in given
    ]
    result: Value = node.op(*parts, label=node.label)
    return result


def _function(real: Value, made: Pair, known: Known, found: Found) -> Value | None:
    """A table of what is computed of one image, number by number."""
    function = _Function(real.type, known, found)
    numbers = function.of(real)
    source = function.source
    if numbers is None or source is None:
        return None
    return table(source.value, made.bytes_of(numbers), real.node.label)


class _Function:
    """What is computed for each byte of the one image that it comes from."""

    def __init__(self, type_: TensorType, known: Known, found: Found) -> None:
        self.source: Bytes | None = None
        self._type, self._known, self._found = type_, known, found
        self._numbers: dict[Value, Array | None] = {}

    def of(self, value: Value | None) -> Array | None:
        """Numbers for all bytes; ``None`` where more decides them."""
        if value is None or len(self._numbers) > LONGEST:
            return None
        if value not in self._numbers:
            self._numbers[value] = self._computed(value)
        return self._numbers[value]

    def _computed(self, value: Value) -> Array | None:
        if value.type.elements == 1 and self._known.number(value) is not None:
            array = self._known.array(value)
            return None if array is None else array.reshape(())
        if value.type != self._type:
            return None
        if value in self._found:
            source = self._found[value]
            self.source = self.source or source
            return source.pair.numbers() if self.source == source else None
        if not isinstance(value.op, FUNCTIONS + JOINED):
            return None
        inputs = [self.of(each) for each in value.node.inputs]
        if any(each is None for each in inputs):
            return None
        type_ = value.type.with_shape((256,))
        return np.asarray(outputs(value.op, inputs, (type_,))[0])
