"""One import: what all graphs of the model share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import onnx

from edgewise.convert.assume import Assumptions
from edgewise.convert.bodies import Body
from edgewise.convert.config import ConvertConfig
from edgewise.convert.scope import Scope
from edgewise.convert.source import Parsed
from edgewise.convert.symbolic import Sizes
from edgewise.convert.symbols import Symbols
from edgewise.convert.weights import Weights
from edgewise.format import values
from edgewise.ir.graph import Graph, Value
from edgewise.types import ValueType


class Graphs(Protocol):
    """Imports the graphs within a node, for the operators that have them."""

    def inline(
        self, scope: Scope, graph: onnx.GraphProto, inputs: Sequence[Value]
    ) -> tuple[Value, ...]:
        """Its outputs, computed as part of the graph around it."""

    def body(
        self, scope: Scope, graph: onnx.GraphProto, kinds: Sequence[ValueType]
    ) -> Body:
        """A function over inputs of ``kinds`` and what it reads from around it."""


class World:
    """What the import of one model knows so far.

    Attributes:
        parsed: The model.
        config: What to do with it.
        assumed: Branches that it takes for granted.
        symbols: Names of sizes.
        sizes: Values that sizes alone decide.
        weights: Stored tensors.
        functions: Bodies of branches and loops, by name.
        graphs: Imports nested graphs.
        bounds: What a file may say of a value: checked before inference doubles it.
    """

    def __init__(
        self,
        parsed: Parsed,
        graphs: Graphs,
        config: ConvertConfig,
        assumed: Assumptions,
    ) -> None:
        self.parsed, self.graphs, self.config = parsed, graphs, config
        self.assumed = assumed
        self.symbols = Symbols()
        self.sizes = Sizes()
        self.bounds = values.Sizes()
        self.weights = Weights(parsed)
        self.functions: dict[str, Graph] = {}

    def define(self, name: str, graph: Graph) -> str:
        """Add a function; its name, which may have been taken."""
        unique, count = name, 1
        while unique in self.functions:
            unique, count = f"{name}_{count}", count + 1
        self.functions[unique] = graph
        return unique
