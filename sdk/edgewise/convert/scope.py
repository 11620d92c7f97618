"""Where names are looked up while a model is imported, and what graph grows there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from edgewise.convert.source import MAIN_DOMAINS
from edgewise.convert.symbols import Symbols
from edgewise.dims import Dim, Expr, symbol, symbols
from edgewise.ir.graph import Constant, Graph, Node, Value, Variable, input_value
from edgewise.types import TensorType, ValueType


class Growing:
    """A graph while its nodes are imported: the main one, or the body of a loop.

    Attributes:
        symbols: Names of sizes, for the whole model.
        inputs: Its inputs so far, by name; in a body those for captures come last.
        binders: Values that bind symbols so far.
        checks: Nodes that check what it takes for granted.
        captured: Values around this body that it reads, in the order of its inputs.
        outside: What symbols of this body stand for around it; a symbol that is not
            here means nothing there.
    """

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.inputs: dict[str, Value] = {}
        self.binders: list[Value] = []
        self.checks: list[Node] = []
        self.captured: list[Value] = []
        self.outside: dict[str, Dim] = {}
        self._captures: dict[Value, Value] = {}

    def add(self, node: Node) -> None:
        """Note a fresh node: one that gives symbols their sizes is a binder."""
        if node.op.binds or (
            node.op.dynamic and not all(kind.is_static for kind in node.types)
        ):
            self.binders.append(Value(node))
        if node.op.assumption():
            self.checks.append(node)

    def graph(
        self,
        inputs: tuple[Value, ...],
        outputs: tuple[Value, ...],
        names: tuple[str, ...],
    ) -> Graph:
        """What has grown, and all its checks, also where only a shape was read."""
        binders = tuple(self.binders)
        graph = Graph(inputs, outputs, names, {}, binders)
        if not self.checks or not outputs:
            return graph
        kept = {(node.op, node.inputs[1:]) for node in graph.nodes()}
        missing = {(node.op, node.inputs[1:]): node for node in self.checks}
        first = outputs[0]
        for check in (node for key, node in missing.items() if key not in kept):
            first = check.op(first, *check.inputs[1:], label=check.label)
        return Graph(inputs, (first, *outputs[1:]), names, {}, binders)

    def input(self, name: str, kind: ValueType) -> Value:
        """A fresh input, of a name of its own."""
        key, count = name, 1
        while key in self.inputs:
            key, count = f"{name}_{count}", count + 1
        self.inputs[key] = input_value(key, kind)
        return self.inputs[key]

    def inside(self, kind: ValueType) -> ValueType:
        """A type around this body as it is within: each size a symbol of its own."""
        if not isinstance(kind, TensorType):
            return kind
        return kind.with_shape(tuple(map(self._size, kind.shape)))

    def _size(self, dim: Dim) -> Dim:
        if not isinstance(dim, Expr):
            return dim
        name = next(iter(symbols(dim)))
        if dim == symbol(name):
            self.outside[name] = dim
            return dim
        for name, known in self.outside.items():
            if known == dim:
                return symbol(name)
        (fresh,) = self.symbols.fresh(1)
        self.outside[str(fresh)] = dim
        return fresh

    def capture(self, value: Value, name: str) -> Value:
        """What stands in this body for a value around it."""
        if isinstance(value.op, Constant | Variable):
            return value  # every graph may read these
        if value not in self._captures:
            self.captured.append(value)
            self._captures[value] = self.input(name, self.inside(value.kind))
        return self._captures[value]


class Scope:
    """What names stand for in a graph, in one nested in it, or in a function.

    Attributes:
        growing: The graph that nodes go to.
        versions: Versions of operator sets by domain.
        attributes: Attributes of the call that this is the body of.
        calls: Functions that are being expanded, outermost first.
        depth: How many scopes lie around this one.
        values: The names of this scope alone; ``None``: an input that a call left out.
    """

    def __init__(
        self,
        growing: Growing,
        versions: Mapping[str, int],
        parent: Scope | None = None,
        attributes: Mapping[str, onnx.AttributeProto] | None = None,
        calls: tuple[str, ...] = (),
    ) -> None:
        self.growing, self.versions, self._parent = growing, versions, parent
        self.attributes, self.calls = attributes or {}, calls
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.values: dict[str, Value | None] = {}

    def nested(self, growing: Growing) -> Scope:
        """The scope of a graph within, which sees this one."""
        return Scope(growing, self.versions, self, self.attributes, self.calls)

    def called(
        self,
        title: str,
        versions: Mapping[str, int],
        attributes: Mapping[str, onnx.AttributeProto],
        *,
        sees: bool = False,
    ) -> Scope:
        """The scope of a function called from here.

        It sees its inputs only, unless ``sees``.
        """
        calls, around = (*self.calls, title), self if sees else None
        scope = Scope(self.growing, versions, around, attributes, calls)
        scope.depth = self.depth + 1
        return scope

    def version(self, domain: str) -> int:
        """Version of an operator set; 1 where the model does not say."""
        return self.versions.get(domain if domain not in MAIN_DOMAINS else "", 1)

    def find(self, name: str) -> Value | None:
        """What ``name`` stands for here, or in the nearest scope around."""
        if name in self.values or self._parent is None:
            return self.values.get(name)
        found = self._parent.find(name)
        if found is None or self._parent.growing is self.growing:
            return found
        return self.growing.capture(found, name)

    def __contains__(self, name: object) -> bool:
        if name in self.values:
            return True
        return self._parent is not None and name in self._parent

    def update(self, names: Iterable[str], values: Iterable[Value | None]) -> None:
        """Let names stand for values; an empty name is one that nobody wants."""
        for name, value in zip(names, values, strict=True):
            if name:
                self.values[name] = value
