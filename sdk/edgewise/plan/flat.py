"""A graph with its values numbered: the form in which every plan works.

Looking a ``Value`` up in a dict costs a hash and a comparison in Python; a number in a
list costs neither.  The numbering is made once per function and shared by the plans of
all its sizes.
"""

from __future__ import annotations

from collections.abc import Collection

from edgewise.ir.graph import Graph, Leaf, Node, Value, Variable
from edgewise.types import ValueType

ABSENT = -1


class Flat:
    """A graph as lists over node numbers and value numbers.

    Attributes:
        fixed: Keys of the variables that no run assigns, by value number.
        leaves: Value number and node of every input, variable and constant.
        nodes: The nodes that compute, each after those it reads.
        reads: Value numbers each node reads; ``ABSENT`` for an optional input left out.
        writes: Value numbers each node makes.
        types: Type of every value, as inferred with symbols.
        inputs: Value numbers of the graph's inputs.
        outputs: Value numbers of the graph's outputs.
        output_names: Names of the outputs.
        updates: Value number of the new value of each variable the graph assigns.
        symbolic: For every node, whether an attribute holds a symbol.
        static: Whether no type and no attribute holds a symbol.
    """

    __slots__ = (
        "fixed",
        "inputs",
        "leaves",
        "nodes",
        "output_names",
        "outputs",
        "reads",
        "static",
        "symbolic",
        "types",
        "updates",
        "writes",
    )

    def __init__(self, graph: Graph, fixed: Collection[str] = ()) -> None:
        first: dict[int, int] = {}
        self.leaves: list[tuple[int, Node]] = []
        self.nodes: list[Node] = []
        self.reads: list[tuple[int, ...]] = []
        self.writes: list[tuple[int, ...]] = []
        self.types: list[ValueType] = []
        for node in graph.nodes():
            start = first[id(node)] = len(self.types)
            self.types.extend(node.types)
            if isinstance(node.op, Leaf):
                self.leaves.append((start, node))
                continue
            self.nodes.append(node)
            self.reads.append(
                tuple(
                    ABSENT if value is None else first[id(value.node)] + value.index
                    for value in node.inputs
                )
            )
            self.writes.append(tuple(range(start, len(self.types))))

        def number(value: Value) -> int:
            return first[id(value.node)] + value.index

        self.fixed = {
            number: node.op.key
            for number, node in self.leaves
            if isinstance(node.op, Variable) and node.op.key in fixed
        }
        self.inputs = tuple(map(number, graph.inputs))
        self.outputs = tuple(map(number, graph.outputs))
        self.output_names = graph.output_names
        self.updates = {key: number(value) for key, value in graph.updates.items()}
        self.symbolic = [bool(node.op.symbols()) for node in self.nodes]
        self.static = not any(self.symbolic) and all(t.is_static for t in self.types)

    def reading(self, reads: list[tuple[int, ...]]) -> Flat:
        """The same graph, whose nodes read other values."""
        fresh: Flat = object.__new__(Flat)
        for name in self.__slots__:
            setattr(fresh, name, getattr(self, name))
        fresh.reads = reads
        return fresh
