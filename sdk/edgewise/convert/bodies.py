"""Bodies of branches and loops: graphs of their own, and what they read around them."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.convert.scope import Growing
from edgewise.dims import Dim, bind, symbols
from edgewise.ir.graph import Graph, Value
from edgewise.types import ValueType


class Body:
    """A nested graph that became a graph of its own.

    Attributes:
        growing: Its inputs, its binders, what it reads from around it.
        outputs: What it gives.
    """

    def __init__(self, growing: Growing, outputs: Sequence[Value]) -> None:
        self.growing, self.outputs = growing, tuple(outputs)

    @property
    def kinds(self) -> tuple[ValueType, ...]:
        """Types of its outputs, as the graph within has them."""
        return tuple(value.kind for value in self.outputs)

    def around(self, dim: Dim) -> Dim | None:
        """A size within as it is called around; ``None`` where nothing there is it."""
        outside = self.growing.outside
        if symbols(dim) <= outside.keys():
            return bind(dim, outside)
        return None

    def graph(self, captured: Sequence[Value]) -> Graph:
        """The function that takes all of ``captured`` behind its own inputs."""
        growing = self.growing
        inputs = list(growing.inputs.values())
        own = inputs[: len(inputs) - len(growing.captured)]
        held = [growing.capture(value, value.node.label) for value in captured]
        names = tuple(f"output {index}" for index in range(len(self.outputs)))
        return growing.graph((*own, *held), self.outputs, names)
