"""Graphs and modules from the text that ``text.py`` writes."""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from edgewise.dim_text import parse
from edgewise.dims import Dim
from edgewise.errors import EdgewiseError, ModelFormatError
from edgewise.ir.graph import Constant, Graph, Input, Node, Value, Variable
from edgewise.ir.module import Coding, Module, Role, VariableInfo
from edgewise.ir.op import OPS, Array, AttributeValue, Field, Op
from edgewise.ir.text import default_label
from edgewise.types import (
    DType,
    OptionalType,
    QuantParams,
    SequenceType,
    TensorType,
    Unranked,
    ValueType,
)

Arrays = Mapping[str, Array]
NUMBERS = {"inf": math.inf, "nan": math.nan}


def parse_graph(text: str, arrays: Arrays) -> Graph:
    """The graph of a text that holds one.

    Raises:
        ModelFormatError: The text is not a graph; names the line.
    """
    functions = parse_module(text, arrays).functions
    if len(functions) != 1:
        raise ModelFormatError("", f"{len(functions)} graphs in the text; want one")
    return next(iter(functions.values()))


def parse_module(text: str, arrays: Arrays) -> Module:
    """The module of a text.

    Raises:
        ModelFormatError: The text is not a module; names the line.
    """
    reader = _Reader(arrays)
    for number, line in enumerate(text.splitlines(), 1):
        try:
            reader.read(line.strip())
        except (EdgewiseError, SyntaxError, ValueError, KeyError, TypeError) as error:
            reason = f"line {number}: {line.strip()[:60]!r}: {error}"
            raise ModelFormatError("", reason) from error
    reader.finish()
    return Module(reader.functions, reader.variables, reader.metadata)


class _Reader:
    """What the lines so far have said."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.functions: dict[str, Graph] = {}
        self.variables: dict[str, VariableInfo] = {}
        self.metadata: dict[str, str] = {}
        self._name = ""
        self._inputs: list[str] = []
        self._values: dict[str, Value] = {}
        self._outputs: dict[str, Value] = {}
        self._updates: dict[str, Value] = {}
        self._binders: tuple[Value, ...] = ()

    def read(self, line: str) -> None:
        """One line of the text."""
        word, _, rest = line.partition(" ")
        if word == "module":
            self.metadata = dict(ast.literal_eval(rest))
        elif word == "graph":
            self.finish()
            self._begin(line)
        elif word == "return":
            self._outputs = dict(self._pairs(rest))
        elif word == "update":
            self._updates = dict(self._pairs(rest))
        elif word == "bind":
            self._binders = self._list(rest)
        elif line.startswith("variable("):
            self._variable(_expression(line))
        elif line:
            self._node(line)

    def _begin(self, line: str) -> None:
        match = re.fullmatch(r"graph (\w+)\(([\w, ]*)\):", line)
        if match is None:
            raise ValueError("want graph name(inputs):")
        self._name = match[1]
        self._inputs = re.findall(r"\w+", match[2])
        self._values, self._outputs, self._updates = {}, {}, {}
        self._binders = ()

    def finish(self) -> None:
        """File the graph that the lines were of."""
        missing = sorted(set(self._inputs) - set(self._values))
        if self._name and missing:
            raise ModelFormatError("", f"graph {self._name}: no input {missing[0]}")
        if self._name:
            inputs = tuple(self._values[name] for name in self._inputs)
            self.functions[self._name] = Graph(
                inputs,
                tuple(self._outputs.values()),
                tuple(self._outputs),
                self._updates,
                self._binders,
            )
        self._name = ""

    def _pairs(self, text: str) -> Iterator[tuple[str, Value]]:
        found = _expression(text)
        if not isinstance(found, ast.Dict):
            raise TypeError("want {name: value}")
        for key, value in zip(found.keys, found.values, strict=True):
            yield ast.literal_eval(key or value), self._value(value)

    def _list(self, text: str) -> tuple[Value, ...]:
        found = _expression(text)
        if not isinstance(found, ast.List):
            raise TypeError("want [value, …]")
        return tuple(map(self._value, found.elts))

    def _value(self, node: ast.expr) -> Value:
        return self._values[_identifier(node)]

    def _node(self, line: str) -> None:
        left, _, right = line.partition(" = ")
        outputs = _expression("{" + left + "}")
        call, label = _expression(right), None
        if isinstance(call, ast.BinOp):
            label = ast.literal_eval(call.right)
            call = call.left
        if not isinstance(outputs, ast.Dict) or not isinstance(call, ast.Call):
            raise TypeError("want values: types = op(inputs, attributes)")
        types = tuple(map(_value_type, outputs.values))
        op, inputs = self._op(call, types)
        node = Node(op, inputs, types, default_label(op) if label is None else label)
        for index, key in enumerate(outputs.keys):
            self._values[_identifier(key)] = Value(node, index)

    def _op(
        self, call: ast.Call, types: tuple[ValueType, ...]
    ) -> tuple[Op, tuple[Value | None, ...]]:
        name = _identifier(call.func)
        if name == "constant":
            return Constant(self._array(call.args[0], types[0])), ()
        if name in ("input", "variable"):
            leaf = Input if name == "input" else Variable
            return leaf(ast.literal_eval(call.args[0])), ()
        inputs = tuple(
            None if isinstance(argument, ast.Constant) else self._value(argument)
            for argument in call.args
        )
        return _op(call), inputs

    def _array(self, node: ast.expr, type_: ValueType) -> Array:
        if isinstance(node, ast.Name) and node.id not in NUMBERS:
            return self.arrays[node.id]
        if not isinstance(type_, TensorType):
            raise TypeError("want a tensor")
        return np.asarray(_numbers(node), type_.dtype.numpy).reshape(type_.dims)

    def _variable(self, call: ast.expr) -> None:
        if not isinstance(call, ast.Call):
            raise TypeError("want variable(key, role, type)")
        key, role, type_ = call.args
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        packing, initial = named.get("packing"), named.get("initial")
        info = VariableInfo(
            ast.literal_eval(key),
            _type(type_),
            Role(ast.literal_eval(role)),
            None if initial is None else self.arrays[_identifier(initial)],
            _type(named["logical"]) if "logical" in named else None,
            _op(packing) if isinstance(packing, ast.Call) else None,
            Coding(ast.literal_eval(named["coding"]) if "coding" in named else "plain"),
        )
        self.variables[info.key] = info


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _identifier(node: ast.expr | None) -> str:
    if not isinstance(node, ast.Name):
        raise TypeError("want a name")
    return node.id


def _numbers(node: ast.expr) -> Any:
    if isinstance(node, ast.List):
        return [_numbers(item) for item in node.elts]
    return _literal(node)


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Name(id=name) if name in NUMBERS:
            return NUMBERS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)) if name in NUMBERS:
            return -NUMBERS[name]
    return ast.literal_eval(node)


def _value_type(node: ast.expr) -> ValueType:
    if not isinstance(node, ast.Call):
        return _type(node)
    name, (inner,) = _identifier(node.func), node.args
    if name not in {"sequence", "optional"}:
        raise TypeError("want a type such as sequence(f32[N, 3])")
    if name == "optional" and isinstance(inner, ast.Call):
        return OptionalType(SequenceType(_element(inner.args[0])))
    held = _element(inner)
    return SequenceType(held) if name == "sequence" else OptionalType(held)


def _element(node: ast.expr) -> TensorType | Unranked:
    match node:
        case ast.Subscript(value=dtype, slice=ast.Constant(value=inner)):
            if inner is ...:
                return Unranked(DType(_identifier(dtype)))
    return _type(node)


def _type(node: ast.expr) -> TensorType:
    quant = None
    if isinstance(node, ast.BinOp):
        scales, zeros, axis, block = ast.literal_eval(node.right)
        node, quant = node.left, QuantParams(scales, zeros, axis, block)
    if not isinstance(node, ast.Subscript):
        raise TypeError("want a type such as f32[N, 3]")
    inner = node.slice
    dims = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    shape = tuple(_dim(dim) for dim in dims)
    return TensorType(DType(_identifier(node.value)), shape, quant)


def _dim(node: ast.expr) -> Dim:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return parse(node.value)
    return parse(ast.unparse(node))


def _op(call: ast.Call) -> Op:
    name = _identifier(call.func)
    cls = OPS[name if name in OPS else name.removesuffix("_")]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if set(given) != {field.name for field in cls.fields}:
        raise TypeError(f"{cls.name} has the attributes {[f.name for f in cls.fields]}")
    return cls(*(_attribute(cls, field, given[field.name]) for field in cls.fields))


def _attribute(cls: type[Op], field: Field, node: ast.expr) -> AttributeValue:
    if isinstance(node, ast.Tuple):
        return tuple(_attribute(cls, field, item) for item in node.elts)
    kind = str(field.kind)
    if "Dim" in kind:
        return _dim(node)
    if isinstance(node, ast.Attribute):
        found: AttributeValue = _enum(cls, _identifier(node.value))[node.attr]
        return found
    value: AttributeValue = _literal(node)
    return value


def _enum(cls: type[Op], name: str) -> Any:
    """The enum that a class in the op's ancestry could name in its annotations."""
    for ancestor in cls.__mro__:
        found = getattr(sys.modules[ancestor.__module__], name, None)
        if found is not None:
            return found
    raise KeyError(name)
