"""What an operator's importer sees: one node, its inputs, its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from edgewise.convert.bodies import Body
from edgewise.convert.order import node_name
from edgewise.convert.run_time import read
from edgewise.convert.scope import Scope
from edgewise.convert.symbolic import Sizes
from edgewise.convert.tensors import (
    attribute_value,
    element_type,
    sparse_array,
    tensor_array,
)
from edgewise.convert.world import World
from edgewise.dims import Dim, Expr, Shape
from edgewise.errors import ModelFormatError, UnsupportedOpError
from edgewise.format.tables import DamageError
from edgewise.ir.graph import Value, constant
from edgewise.ir.op import Array, Op
from edgewise.ops.shape import Reshape
from edgewise.types import DType, ValueType


class OpContext:
    """One ONNX node while it is imported.

    Attributes:
        node: The node as the file has it.
        name: Its name, or that of its first output where it has none.
        opset: Version of the operator set that the node is of.
        inputs: Values it reads; ``None`` where an optional one is left out.
        scope: Where its names are looked up.
        world: The import that this is part of.
    """

    def __init__(
        self,
        world: World,
        scope: Scope,
        node: onnx.NodeProto,
        inputs: tuple[Value | None, ...],
    ) -> None:
        self.world, self.scope, self.node, self.inputs = world, scope, node, inputs
        self.opset = scope.version(node.domain)
        self.name = node_name(node)
        self._attributes = {item.name: item for item in node.attribute}
        self._read: set[str] = set()

    def emit(self, op: Op, *inputs: Value | None) -> Value:
        """The first output of a core op, labelled with this node's name."""
        return self.emit_all(op, *inputs)[0]

    def emit_all(self, op: Op, *inputs: Value | None) -> tuple[Value, ...]:
        """All outputs of a core op, labelled with this node's name."""
        outputs = op.node(*inputs, label=self.name)
        try:
            for value in outputs:
                self.world.bounds.want_sane(value.kind)
        except DamageError as error:
            raise self.malformed(f"one of its values is too large: {error}") from error
        self.scope.growing.add(outputs[0].node)
        return outputs

    def constant(self, array: Array) -> Value:
        """A constant, labelled with this node's name."""
        return constant(array, self.name)

    def like(self, number: float, value: Value) -> Value:
        """A scalar constant of the element type of ``value``."""
        dtype = value.type.dtype
        try:
            return self.constant(np.array(number, dtype.numpy))
        except (OverflowError, ValueError) as error:  # beyond it, or not a number
            raise self.malformed(
                f"computes with {number} and {dtype.value}; want one of its numbers"
            ) from error

    # Inputs

    def __getitem__(self, index: int) -> Value:
        """Input ``index``, which the operator cannot do without."""
        value = self.optional(index)
        if value is None:
            raise self.malformed(f"its input {index} is missing")
        return value

    def ranked(self, index: int, *ranks: int) -> Value:
        """Input ``index``, which must have one of these numbers of axes."""
        value = self[index]
        if value.type.rank not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise self.malformed(
                f"its input {index} is {value.type}; want {wanted} axes"
            )
        return value

    def optional(self, index: int) -> Value | None:
        """Input ``index``; ``None`` where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def all(self) -> tuple[Value, ...]:
        """All inputs, of which none may be left out."""
        return tuple(self[index] for index in range(len(self.inputs)))

    def pin(self, index: int, count: int) -> None:
        """Take input ``index`` to hold ``count`` numbers where its type leaves it open.

        The operator takes no other number of them, so a run that has one ends.
        """
        value = self.optional(index)
        if value is not None and isinstance(value.type.elements, Expr):
            pinned = self.emit(Reshape((count,)), value)
            self.inputs = (*self.inputs[:index], pinned, *self.inputs[index + 1 :])

    # Sizes

    @property
    def known_sizes(self) -> Sizes:
        """What sizes alone decide."""
        return self.world.sizes

    def known(self, index: int) -> Shape | None:
        """Input ``index`` as sizes, symbols too; ``None`` where only a run knows it."""
        array = self.world.sizes.known(self[index])
        return None if array is None else tuple(array.reshape(-1).tolist())

    def late(self, index: int, since: int) -> bool:
        """Whether input ``index``, there from ``since`` on, is for a run to know."""
        if self.opset < since or self.optional(index) is None:
            return False
        known = self.known(index)
        return known is None or not all(isinstance(size, int) for size in known)

    def sizes(self, index: int) -> Shape | None:
        """Input ``index`` as sizes; ``None`` where it is left out.

        What only a run knows are symbols, which the run binds; it stops at a negative.
        """
        return None if self.optional(index) is None else self.read(self[index])

    def read(self, vector: Value, given: Sequence[Dim | None] | None = None) -> Shape:
        """The elements of an integer vector, or a scalar, as sizes.

        Args:
            vector: What to read; the run stops where an element is negative.
            given: Elements that are known in another way; ``None`` where not.
        """
        return read(self, vector, given)

    def fresh(self, count: int) -> Shape:
        """New symbols for sizes of outputs that only a run knows."""
        return self.world.symbols.fresh(count)

    def integers(self, index: int) -> tuple[int, ...] | None:
        """Input ``index`` as whole numbers; ``None`` where it is left out."""
        if self.optional(index) is None:
            return None
        sizes = self.known(index)
        if sizes is None:
            raise self.unsupported(
                f"its input {index} ({self.node.input[index]!r}) is known only at run"
                " time",
                "make it a constant before export",
            )
        return tuple(self.whole(size) for size in sizes)

    def whole(self, size: Dim) -> int:
        """A size that must be known now."""
        if not isinstance(size, int):
            raise self.unsupported(
                f"needs the number {size}, which only a run knows",
                "give fixed input_shapes",
            )
        return size

    def constant_or_none(self, index: int) -> Array | None:
        """Input ``index`` read now; ``None`` where only a run knows it."""
        value = self.optional(index)
        if value is None:
            return None
        array = self.world.sizes.known(value)
        if array is None or array.dtype == object:
            array = self.world.weights.initial(value)
        return array

    def fixed(self, index: int) -> Array | None:
        """Input ``index`` read now: a constant, or a stored tensor in its place."""
        if self.optional(index) is None:
            return None
        array = self.constant_or_none(index)
        if array is None:
            raise self.unsupported(
                f"its input {index} ({self.node.input[index]!r}) is not a constant",
                "make it a constant before export",
            )
        return array

    # Attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """The plain value of an attribute, or ``default``."""
        self._read.add(name)
        item = self._attributes.get(name)
        return default if item is None else attribute_value(item)

    def tensor(self, name: str) -> Array | None:
        """The array of a tensor attribute, a sparse one too."""
        self._read.add(name)
        item = self._attributes.get(name)
        if item is None:
            return None
        where = f"attribute {name!r} of node {self.name!r}"
        if item.HasField("sparse_tensor"):
            return sparse_array(self.world.parsed, item.sparse_tensor, where)
        return tensor_array(self.world.parsed, item.t, where)

    def element_type(self, code: int) -> DType:
        """The type that an attribute's ``code`` stands for."""
        return element_type(self.world.parsed, code, f"node {self.name!r}")

    def axis(self, rank: int, default: int, name: str = "axis") -> int:
        """An axis attribute, counted from the front."""
        return self.normal(int(self.attribute(name, default)), rank)

    def normal(self, axis: int, rank: int) -> int:
        """``axis`` counted from the front."""
        if not -rank <= axis < rank:
            raise self.malformed(f"its axis {axis} is not one of {rank} axes")
        return axis % rank

    def axes(self, rank: int, index: int, since: int) -> tuple[int, ...] | None:
        """Axes: attribute ``axes`` before operator set ``since``, then an input."""
        given = self.attribute("axes") if self.opset < since else self.integers(index)
        if given is None:
            return None
        normal = tuple(self.normal(int(axis), rank) for axis in given)
        if len(set(normal)) != len(normal):
            raise self.malformed(f"its axes {list(given)} repeat one")
        return normal

    def ignore(self, *names: str) -> None:
        """Attributes that say nothing to us."""
        self._read.update(names)

    def unread(self) -> list[str]:
        """Attributes that no one asked for: their meaning would be lost."""
        return sorted(set(self._attributes) - self._read)

    # Nested graphs

    def graph(self, name: str) -> onnx.GraphProto:
        """The graph in an attribute."""
        self._read.add(name)
        item = self._attributes.get(name)
        if item is None or not item.HasField("g"):
            raise self.malformed(f"its graph {name!r} is missing")
        return item.g

    def inline(self, name: str, *inputs: Value) -> tuple[Value, ...]:
        """The outputs of a nested graph, computed right here."""
        return self.world.graphs.inline(self.scope, self.graph(name), inputs)

    def body(self, name: str, kinds: Sequence[ValueType]) -> Body:
        """A nested graph as a function over inputs of ``kinds``."""
        return self.world.graphs.body(self.scope, self.graph(name), kinds)

    # Errors

    @property
    def title(self) -> str:
        """The operator with its domain and version."""
        domain = self.node.domain or "ai.onnx"
        return f"{domain}.{self.node.op_type} (opset {self.opset})"

    def unsupported(self, reason: str, fix: str) -> UnsupportedOpError:
        """The error for a form that edgewise does not have; the caller raises it."""
        return UnsupportedOpError(self.title, self.name, reason, fix)

    def malformed(self, reason: str) -> ModelFormatError:
        """The error for a node that breaks ONNX's rules; the caller raises it."""
        where = f"node {self.name!r} ({self.title})"
        return self.world.parsed.error(f"{where}: {reason}")
