"""Arrays that sizes alone decide: shape arithmetic, carried out at import.

Exporters write shapes as graphs (``Shape -> Gather -> Mul -> Concat -> Reshape``).
Here such a graph is evaluated over numpy object arrays whose elements are ``Dim``s, so
that ``Reshape`` and its kin get sizes with symbols in place of tensors.
"""

from __future__ import annotations

import math

import numpy as np

from edgewise.convert.symbolic_rules import (
    RULES,
    Unknown,
    as_dims,
    fits,
    objects,
    quotient,
)
from edgewise.dims import Dim, Expr, Shape
from edgewise.errors import ShapeError
from edgewise.ir.graph import Constant, Leaf, Value, constant
from edgewise.ir.op import Array
from edgewise.ops.binary import Div
from edgewise.ops.bindings import ReadDims
from edgewise.ops.choose import Cast
from edgewise.ops.create import DimValue
from edgewise.ops.quantize import Dequantize
from edgewise.ops.shape import Concat, Reshape
from edgewise.ops.unary import Floor
from edgewise.types import DType, TensorType

LIMIT = 4096  # elements; no shape has more, and no bomb fits
MAX_DEPTH = 64  # joins and casts that a vector's elements are looked for behind


class Sizes:
    """Finds the values of a graph that sizes alone decide."""

    def __init__(self) -> None:
        self._found: dict[Value, Array | None] = {}

    def known(self, value: Value) -> Array | None:
        """The array of ``value``, of objects where symbols are in it; else ``None``."""
        if value not in self._found:
            self._found[value] = self._evaluate(value)
        return self._found[value]

    def elements(self, value: Value, depth: int = 0) -> list[Dim | None] | None:
        """The elements of a vector, ``None`` for one that only a run knows.

        ``None`` in place of them all where it tells nothing.
        """
        array = self.known(value)
        if array is not None:
            return list(array.reshape(-1).tolist())
        if depth > MAX_DEPTH:
            return None
        source = value.node.inputs[0] if value.node.inputs else None
        if isinstance(value.op, Concat):
            parts = [v for v in value.node.inputs if v is not None]
            return self._joined(parts, depth + 1)
        if isinstance(value.op, Reshape | Cast | ReadDims) and source is not None:
            whole = source.type.dtype.is_integer and value.type.dtype.is_integer
            known = whole and _small(source)
            return self.elements(source, depth + 1) if known else None
        return None

    def _joined(self, parts: list[Value], depth: int) -> list[Dim | None] | None:
        joined: list[Dim | None] = []
        for part in parts:
            if part.type.rank != 1 or not _small(part):
                return None
            known = self.elements(part, depth)
            joined += [None] * part.type.dims[0] if known is None else known
        return joined

    def note(self, value: Value, sizes: Shape) -> None:
        """Remember that the elements of ``value`` are ``sizes`` from here on."""
        self._found[value] = _plain(_filled(sizes, value.type.dims), value)

    def settle(self, value: Value) -> Value:
        """A constant or ``dim_value`` that is the same; else the value itself."""
        if isinstance(value.op, Leaf) or not isinstance(value.kind, TensorType):
            return value
        array = self.known(value)
        if array is None:
            return value
        settled = _materialise(array, value)
        self._found[settled] = array
        return settled

    def _evaluate(self, value: Value) -> Array | None:
        op = value.op
        if isinstance(op, Constant):
            return op.array if op.array.size <= LIMIT else None
        if isinstance(op, DimValue):
            return _plain(objects(op.dims[0] if op.scalar else op.dims), value)
        if isinstance(op, Leaf) or op.random or op.dynamic or not _small(value):
            return None
        if isinstance(op, Dequantize) and value.type.rank > 1:
            return None  # a weight is no size, and products want its whole numbers
        if any(map(_is_text, (value, *value.node.inputs))):
            return None  # texts are no sizes, and may be long
        arrays = self._inputs(value)
        if arrays is None:
            return self._floored(value)
        known = (array for array in arrays if array is not None)
        if op.symbols() or any(array.dtype == object for array in known):
            return _symbolic(value, arrays)
        with np.errstate(all="ignore"):
            result = op.reference(*arrays)
        return result[value.index] if isinstance(result, tuple) else result

    def _inputs(self, value: Value) -> list[Array | None] | None:
        arrays = []
        for source in value.node.inputs:
            array = None if source is None else self.known(source)
            if source is not None and array is None:
                return None
            arrays.append(array)
        return arrays

    def _floored(self, value: Value) -> Array | None:
        """``floor(a / b)`` of sizes as floats: whole although the quotient is not."""
        whole = isinstance(value.op, Floor) or (
            isinstance(value.op, Cast) and value.type.dtype.is_integer
        )
        source = value.node.inputs[0] if value.node.inputs else None
        if not whole or source is None or not isinstance(source.op, Div):
            return None
        arrays = self._inputs(source)
        if arrays is None or not source.type.dtype.is_float:
            return None
        try:
            a, b = (as_dims(array) for array in arrays if array is not None)
            return _plain(objects(np.frompyfunc(quotient, 2, 1)(a, b)), value)
        except (Unknown, ShapeError):
            return None


def _filled(sizes: Shape, shape: tuple[int, ...]) -> Array:
    array = np.empty(len(sizes), object)
    array[:] = sizes
    return array.reshape(shape)


def _small(value: Value) -> bool:
    kind = value.kind
    static = isinstance(kind, TensorType) and kind.is_static
    return static and math.prod(value.type.dims) <= LIMIT


def _plain(array: Array, value: Value) -> Array | None:
    """As plain numbers where no symbol is left; ``None`` where they are no sizes."""
    if not all(map(fits, array.flat)):
        return None
    if any(isinstance(item, Expr) for item in array.flat):
        return array
    try:
        return array.astype(value.type.dtype.numpy)
    except OverflowError:
        return None


def _is_text(value: Value | None) -> bool:
    kind = None if value is None else value.kind
    return isinstance(kind, TensorType) and kind.dtype is DType.STRING


def _symbolic(value: Value, arrays: list[Array | None]) -> Array | None:
    rule = RULES.get(value.op.name)
    if rule is None:
        return None
    try:
        known = [None if array is None else as_dims(array) for array in arrays]
        return _plain(objects(rule(value.op, value.type, *known)), value)
    except (Unknown, ShapeError):  # beyond what symbols can say: a run computes it
        return None


def _materialise(array: Array, value: Value) -> Value:
    label = value.node.label
    if array.dtype != object:
        return constant(array.astype(value.type.dtype.numpy), label)
    settled = DimValue(tuple(array.flat), array.ndim == 0)(label=label)
    if array.ndim > 1:
        settled = Reshape(array.shape)(settled, label=label)
    if value.type.dtype is not DType.I64:
        settled = Cast(value.type.dtype.value)(settled, label=label)
    return settled
