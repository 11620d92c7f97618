"""Graphs and modules as text to read; ``parse.py`` reads it back.

Every line is one node, written like a call in Python::

    graph infer(v0):
      v0: f32[N, 3] = input("x")
      v1: f32[1, 3, 16] = variable("fc.weight")
      v2: f32[N, 5] = linear(v0, v1, None, columns=5, …) @ "fc"
      return {"y": v2}

Inputs come first, then attributes by name; the label of a node follows ``@``, unless it
is the key of an input or variable.  Arrays that are long, or that numbers do not hold
exactly, stand in a table beside the text.
"""

from __future__ import annotations

import enum
import keyword
from typing import NamedTuple

import numpy as np

from edgewise.dims import Dim, Expr, symbols
from edgewise.ir.graph import Constant, Graph, Input, Node, Value, Variable
from edgewise.ir.module import Coding, Module, VariableInfo
from edgewise.ir.op import Array, AttributeValue, Op
from edgewise.types import QuantParams, TensorType, ValueType

MAX_LITERAL = 16


class Text(NamedTuple):
    """A text and the arrays it names.

    Attributes:
        text: Lines, each ended.
        arrays: Arrays by the names in the text.
    """

    text: str
    arrays: dict[str, Array]


def graph_text(graph: Graph, name: str = "infer") -> Text:
    """The graph, as a function called ``name``."""
    table = _Table()
    return Text(_graph(graph, name, table), table.arrays)


def module_text(module: Module) -> Text:
    """The module: metadata, variables, functions."""
    table = _Table()
    parts = [f"module {module.metadata!r}\n"]
    parts += [_variable(info, table) for info in module.variables.values()]
    parts += [_graph(graph, name, table) for name, graph in module.functions.items()]
    return Text("".join(parts), table.arrays)


class _Table:
    """Names for arrays that the text does not spell out."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def add(self, array: Array) -> str:
        for name, known in self.arrays.items():
            if known is array:
                return name
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name


def _graph(graph: Graph, name: str, table: _Table) -> str:
    names: dict[Value, str] = {}
    nodes = graph.nodes()
    for node in nodes:
        for index in range(len(node.types)):
            names[Value(node, index)] = f"v{len(names)}"
    inputs = ", ".join(names[value] for value in graph.inputs)
    lines = [f"graph {name}({inputs}):"]
    lines += [f"  {_node(node, names, table)}" for node in nodes]
    outputs = zip(graph.output_names, graph.outputs, strict=True)
    pairs = ", ".join(f"{key!r}: {names[value]}" for key, value in outputs)
    lines.append(f"  return {{{pairs}}}")
    if graph.binders:
        binders = ", ".join(names[value] for value in graph.binders)
        lines.append(f"  bind [{binders}]")
    if graph.updates:
        stored = graph.updates.items()
        pairs = ", ".join(f"{key!r}: {names[value]}" for key, value in stored)
        lines.append(f"  update {{{pairs}}}")
    return "\n".join(lines) + "\n"


def _node(node: Node, names: dict[Value, str], table: _Table) -> str:
    left = ", ".join(
        f"{names[Value(node, index)]}: {type_text(type_)}"
        for index, type_ in enumerate(node.types)
    )
    label = "" if node.label == default_label(node.op) else f" @ {node.label!r}"
    return f"{left} = {_call(node, names, table)}{label}"


def default_label(op: Op) -> str:
    """The label that a text leaves out."""
    return op.key if isinstance(op, Input | Variable) else ""


def _call(node: Node, names: dict[Value, str], table: _Table) -> str:
    if isinstance(node.op, Constant):
        return f"constant({_array(node.op.array, table)})"
    if isinstance(node.op, Input | Variable):
        return f"{node.op.name}({node.op.key!r})"
    inputs = ["None" if value is None else names[value] for value in node.inputs]
    return op_text(node.op, *inputs)


def op_text(op: Op, *inputs: str) -> str:
    """The op as a call: texts of its inputs, then its attributes by name."""
    pairs = zip(op.fields, op.values, strict=True)
    attributes = (f"{field.name}={attribute_text(value)}" for field, value in pairs)
    name = f"{op.name}_" if keyword.iskeyword(op.name) else op.name
    return f"{name}({', '.join((*inputs, *attributes))})"


def attribute_text(value: AttributeValue) -> str:
    """An attribute, exact to the bit."""
    if isinstance(value, tuple):
        items = ", ".join(map(attribute_text, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, Expr):
        return _dim(value)
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value)


def _dim(dim: Dim) -> str:
    text = str(dim)
    return repr(text) if any(map(keyword.iskeyword, symbols(dim))) else text


def type_text(type_: ValueType) -> str:
    """A type, with its quantisation where it has one."""
    if not isinstance(type_, TensorType):
        return str(type_)
    shape = ", ".join(map(_dim, type_.shape)) or "()"
    text = f"{type_.dtype.value}[{shape}]"
    return f"{text} @ {_quant(type_.quant)}" if type_.quant else text


def _quant(quant: QuantParams) -> str:
    return repr((quant.scales, quant.zero_points, quant.axis, quant.block))


def _array(array: Array, table: _Table) -> str:
    """The numbers of a short array, else its name in the table."""
    if array.size <= MAX_LITERAL and array.dtype.kind in "biuf":
        literal = array.tolist()
        rebuilt = np.asarray(literal, array.dtype).reshape(array.shape)
        if rebuilt.tobytes() == array.tobytes():
            return repr(literal)
    return table.add(array)


def _variable(info: VariableInfo, table: _Table) -> str:
    parts = [repr(info.key), repr(info.role.value), type_text(info.type)]
    if info.logical != info.type:
        parts.append(f"logical={type_text(info.logical)}")
    if info.packing is not None:
        parts.append(f"packing={op_text(info.packing)}")
    if info.coding is not Coding.PLAIN:
        parts.append(f"coding={info.coding.value!r}")
    if info.initial is not None:
        parts.append(f"initial={table.add(info.initial)}")
    return f"variable({', '.join(parts)})\n"
