"""What a graph becomes in ONNX: nodes, and the names that our values have there.

A value has two names at most: of itself, and of the same with its channels second, as
ONNX's image operators want it.  Each is made of the other by a transpose when somebody
asks for it; ops that work in either order ask for the one that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from edgewise.convert.tensors import DTYPES
from edgewise.convert.to_onnx.registry import RULES, Image, Written
from edgewise.convert.to_onnx.sizes import Sizes
from edgewise.errors import InternalError, UnsupportedOpError
from edgewise.ir.graph import Constant, Graph, Input, Node, Value, Variable
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.types import DType

CODES = {dtype: code for code, dtype in DTYPES.items()}
# Elements that casts know only in later operator sets.
LATE = {DType.F8E8M0FNU, DType.F4E2M1FN, DType.I2, DType.U2}
ML = "ai.onnx.ml"


class Tensors:
    """Names that a model has used, and the tensors stored in it.

    Attributes:
        stored: Parameters and whole numbers, by name.
        fixed: Nodes for other numbers: what is stored as a fraction can be trained.
        domains: Operator domains that nodes are of.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._known: dict[tuple[object, ...], str] = {}
        self.stored: dict[str, onnx.TensorProto] = {}
        self.fixed: list[onnx.NodeProto] = []
        self.domains: set[str] = {""}

    def fresh(self, wanted: str) -> str:
        """A name like ``wanted`` that nothing has."""
        name, count = wanted, 1
        while name in self._taken:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name)
        return name

    def constant(self, array: Array, label: str) -> str:
        """The name of a stored array; equal ones are stored once."""
        if array.dtype == object:
            data: object = repr(array.tolist())
        else:
            data = array.tobytes()
        key = (str(array.dtype), array.shape, data)
        if key not in self._known:
            name = self.fresh(label or "constant")
            self._known[key] = name
            self.keep(name, array)
            if DType.of(array.dtype).is_float:
                value = self.stored.pop(name)
                node = helper.make_node("Constant", [], [name], name, value=value)
                self.fixed.append(node)
        return self._known[key]

    def keep(self, name: str, array: Array) -> None:
        """Store an array under a name."""
        self.stored[name] = numpy_helper.from_array(np.asarray(array), name)


class Writer:
    """One graph while it is written.

    Attributes:
        module: What it is a function of.
        tensors: What the whole model shares.
        nodes: What has been written.
        sizes: Symbols and arithmetic of sizes, as tensors.
    """

    def __init__(self, module: Module, tensors: Tensors) -> None:
        self.module, self.tensors = module, tensors
        self.nodes: list[onnx.NodeProto] = []
        self.sizes = Sizes(self)
        self._plain: dict[Value, str] = {}
        self._images: dict[Value, str] = {}

    def nested(self) -> Writer:
        """A writer of a body, which sees what is known around it."""
        return Writer(self.module, self.tensors)

    def write(self, graph: Graph, inputs: Mapping[Value, str]) -> list[str]:
        """Write a graph; the names of its outputs."""
        for value, name in inputs.items():
            self._keep(value, name)
            self.sizes.read_shape(value)
        for node in graph.nodes():
            if not isinstance(node.op, Input):
                self._add(node)
        return [self.name(value) for value in graph.outputs]

    def name(self, value: Value) -> str:
        """The name of a value as it is."""
        found = self._plain.get(value)
        if found is None:
            rank = value.type.rank
            perm = [0, *range(2, rank), 1]
            found = self.emit("Transpose", self._images[value], perm=perm)
            self._plain[value] = found
        return found

    def image(self, value: Value) -> str:
        """The name of a value with its channels second."""
        found = self._images.get(value)
        if found is None:
            perm = list(channels_second(value.type.rank))
            found = self.emit("Transpose", self._plain[value], perm=perm)
            self._images[value] = found
        return found

    def is_image(self, value: Value | None) -> bool:
        """Whether only its form with channels second is there."""
        return value in self._images and value not in self._plain

    def emit(self, op: str, *inputs: str, label: str = "", **attributes: Any) -> str:
        """Add a node with one output; its name."""
        return self.emit_all(op, 1, *inputs, label=label, **attributes)[0]

    def emit_all(
        self,
        op: str,
        count: int,
        *inputs: str,
        label: str = "",
        domain: str = "",
        **attributes: Any,
    ) -> tuple[str, ...]:
        """Add a node; the names of its outputs."""
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        base = label or op
        # An empty list says nothing, and not of what it is a list.
        attributes = {k: v for k, v in attributes.items() if v != []}
        outputs = [self.tensors.fresh(base) for _ in range(count)]
        self.tensors.domains.add(domain)
        self.nodes.append(
            helper.make_node(
                op, given, outputs, outputs[0], domain=domain, **attributes
            )
        )
        return tuple(outputs)

    def constant(self, array: Array, label: str = "") -> str:
        """The name of a stored array."""
        return self.tensors.constant(array, label)

    def _add(self, node: Node) -> None:
        if isinstance(node.op, Constant):
            self._keep(Value(node), self.constant(node.op.array, node.label))
        elif isinstance(node.op, Variable):
            self._keep(Value(node), node.op.key)
        else:
            self._keep_all(node, self._written(node))

    def _written(self, node: Node) -> Written:
        rule = RULES.get(type(node.op))
        at = At(self, node)
        if rule is None:
            raise at.refuse("ONNX has no operator for it")
        return rule(at)

    def _keep_all(self, node: Node, written: Written) -> None:
        names = (written,) if isinstance(written, str) else written
        if len(names) != len(node.types):
            raise InternalError(f"{node}: written as {len(names)} values")
        for index, name in enumerate(names):
            self._keep(Value(node, index), name)
            if node.op.dynamic:
                self.sizes.read_shape(Value(node, index))

    def _keep(self, value: Value, name: str) -> None:
        forms = self._images if isinstance(name, Image) else self._plain
        forms[value] = str(name)


def channels_second(rank: int) -> tuple[int, ...]:
    """The axes of ``[N, ..., C]`` in the order of ``[N, C, ...]``."""
    return (0, rank - 1, *range(1, rank - 1))


class At:
    """A node of ours where it is written.

    Attributes:
        writer: Where to.
        node: The node.
        inputs: What it reads.
    """

    def __init__(self, writer: Writer, node: Node) -> None:
        self.writer, self.node, self.inputs = writer, node, node.inputs

    @property
    def op(self) -> Any:
        """The op, with the attributes of its class."""
        return self.node.op

    @property
    def y(self) -> Value:
        """The first output."""
        return Value(self.node)

    @property
    def x(self) -> Value:
        """The first input."""
        return self.value(0)

    def value(self, index: int) -> Value:
        """An input that is there."""
        found = self.inputs[index]
        if found is None:
            raise InternalError(f"{self.node}: its input {index} is absent")
        return found

    def given(self, index: int) -> Value | None:
        """An input, if it is there."""
        return self.inputs[index] if index < len(self.inputs) else None

    def name(self, index: int) -> str:
        """The name of an input; none where it is absent."""
        value = self.given(index)
        return "" if value is None else self.writer.name(value)

    def names(self) -> list[str]:
        """The names of all inputs."""
        return [self.name(index) for index in range(len(self.inputs))]

    def image(self, index: int) -> str:
        """The name of an input with its channels second."""
        return self.writer.image(self.value(index))

    def emit(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node called as ours is."""
        return self.writer.emit(op, *inputs, label=self.node.label, **attributes)

    def emit_all(self, op: str, count: int, *inputs: str, **more: Any) -> Any:
        """Add a node with so many outputs."""
        return self.writer.emit_all(op, count, *inputs, label=self.node.label, **more)

    def number(self, number: float, like: Value) -> str:
        """A scalar of the element type of a value."""
        return self.writer.constant(np.asarray(number, like.type.dtype.numpy))

    def integers(self, *numbers: int) -> str:
        """A vector of whole numbers."""
        return self.writer.constant(np.asarray(numbers, np.int64))

    def cast(self, name: str, to: DType) -> str:
        """A value as elements of another type."""
        return self.emit("Cast", name, to=CODES[to])

    def reshaped(self, name: str, *shape: int) -> str:
        """A value under another shape, of which every size is known."""
        return self.emit("Reshape", name, self.integers(*shape), allowzero=1)

    def refuse(self, why: str) -> UnsupportedOpError:
        """The error for a form that ONNX does not have; the caller raises it."""
        name = "".join(map(str.capitalize, re.split("_", self.op.name)))
        return UnsupportedOpError(
            name, self.node.label, why, "save the model as .ew, or leave it out"
        )
