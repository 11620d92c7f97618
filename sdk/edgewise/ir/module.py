"""A module: named functions over shared variables, and what is known about it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from edgewise.ir.graph import Graph
from edgewise.ir.op import Array, Op
from edgewise.types import TensorType


class Role(enum.Enum):
    """What a variable is for; decides what is saved, sent and trained."""

    PARAMETER = "parameter"  # learned; named as in the source model
    STATISTIC = "statistic"  # running mean and variance
    STATE = "state"  # optimizer, random counter, recurrent or streaming state
    DERIVED = "derived"  # computed by ``prepare``; never stored


class Coding(enum.Enum):
    """How a file may hold a variable in fewer bytes; training keeps it to that.

    No number changes for it: what does not fit, or would not gain, is stored plainly.
    """

    PLAIN = "plain"
    SPARSE = "sparse"  # many zeros, which stay
    CODEBOOK = "codebook"  # few different values
    BINARY = "binary"  # of every output channel two, which differ in sign alone


class VariableInfo:
    """A tensor that outlives a run.

    Attributes:
        key: Its name; for parameters the name of the ONNX initializer.
        type: Type as stored and as functions read it (packed shape).
        role: What it is for.
        initial: Stored bytes in the shape of ``type``; ``None`` for derived ones and
            for states that start as zeros.
        logical: Type as the user sees it; equals ``type`` where nothing is packed.
        packing: The pack op that turns the logical array into the stored one, whose
            ``unpack`` turns it back; ``None`` where they are the same.
        coding: How a file may hold it.
    """

    __slots__ = ("coding", "initial", "key", "logical", "packing", "role", "type")

    def __init__(
        self,
        key: str,
        type_: TensorType,
        role: Role,
        initial: Array | None = None,
        logical: TensorType | None = None,
        packing: Op | None = None,
        coding: Coding = Coding.PLAIN,
    ) -> None:
        self.key, self.type, self.role, self.initial = key, type_, role, initial
        self.logical = logical or type_
        self.packing, self.coding = packing, coding

    def holding(
        self, array: Array | None, coding: Coding | None = None
    ) -> VariableInfo:
        """The variable with another array, stored as it is; and another coding."""
        return VariableInfo(
            self.key,
            self.type,
            self.role,
            array,
            self.logical,
            self.packing,
            coding or self.coding,
        )


class Module:
    """What a file holds.

    Attributes:
        functions: Graphs by name: ``infer``, ``prepare``, ``train_step``, …
        variables: Shared tensors by name.
        metadata: Free texts of the producer, and our own under ``edgewise.``.
    """

    __slots__ = ("functions", "metadata", "variables")

    def __init__(
        self,
        functions: Mapping[str, Graph],
        variables: Mapping[str, VariableInfo],
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self.functions = dict(functions)
        self.variables = dict(variables)
        self.metadata = dict(metadata or {})

    def with_function(self, name: str, graph: Graph) -> Module:
        """The module with one function added or replaced."""
        return Module({**self.functions, name: graph}, self.variables, self.metadata)
