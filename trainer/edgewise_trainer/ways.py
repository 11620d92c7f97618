"""Ways to do a step: at once, in parts of the batch, keeping less in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from edgewise.dims import Expr
from edgewise.ir.binders import type_symbols
from edgewise.ir.graph import Graph, Input
from edgewise.ir.module import Module, VariableInfo
from edgewise.ir.op import Array
from edgewise.ir.sizes import solve
from edgewise.plan.flat import Flat
from edgewise.plan.plan import Plan, make_plan
from edgewise.types import TensorType
from edgewise_trainer.names import ACCUMULATE, APPLY, TARGET, TRAIN_STEP
from edgewise_trainer.parts import part
from edgewise_trainer.task import Step, Way

Shapes = dict[str, tuple[int, ...]]


class Work(NamedTuple):
    """The functions that do a step in some way.

    Attributes:
        functions: By name; the first takes the inputs of the model.
        sums: What begins as zeros with every step.
        batched: Names of inputs that are cut with the batch.
    """

    functions: Mapping[str, Graph]
    sums: tuple[VariableInfo, ...]
    batched: frozenset[str]

    def module(
        self, model: Module, states: Iterable[VariableInfo], values: Mapping[str, Array]
    ) -> Module:
        """A module that holds them, to run on their own."""
        return part(model, self.functions, (*states, *self.sums), values)

    def shapes(self, examples: int) -> dict[str, Shapes]:
        """Shapes of the inputs of each function, for so many examples."""
        return {name: shapes_of(g, examples) for name, g in self.functions.items()}


def work_of(step: Step, way: Way, batch: int) -> Work:
    """What does a step in some way, at best for batches of some size."""
    sums: tuple[VariableInfo, ...] = ()
    if way.examples is None:
        functions = {TRAIN_STEP: step.graph}
    else:
        # Who does all at once loads nothing of this.
        from edgewise_trainer.accumulation import halves  # noqa: PLC0415

        accumulate, apply, sums = halves(step)
        functions = {ACCUMULATE: accumulate, APPLY: apply}
    if way.segments > 1:
        from edgewise_trainer.recompute import recomputed  # noqa: PLC0415

        name, graph = next(iter(functions.items()))
        sizes = solve(graph, shapes_of(graph, min(way.examples or batch, batch)))
        functions[name] = recomputed(graph, sizes, way.segments)
    return Work(functions, sums, batched(step.graph))


def batched(graph: Graph) -> frozenset[str]:
    """Inputs with an axis for examples; none where the batch cannot be cut."""
    types = {
        value.op.key: value.kind
        for value in graph.inputs
        if isinstance(value.op, Input) and isinstance(value.kind, TensorType)
    }
    examples = types[TARGET].shape[:1]
    if not examples or not isinstance(examples[0], Expr):
        return frozenset()
    found = {key for key, type_ in types.items() if type_.shape[:1] == examples}
    rest = [
        type_.with_shape(type_.shape[1:] if key in found else type_.shape)
        for key, type_ in types.items()
    ]
    tied = type_symbols(tuple(rest)) & type_symbols(
        (types[TARGET].with_shape(examples),)
    )
    return frozenset() if tied else frozenset(found)


def shapes_of(graph: Graph, batch: int) -> Shapes:
    """Shapes of all inputs for a batch; sizes that are open besides are 1."""
    types = {
        value.op.key: value.kind
        for value in graph.inputs
        if isinstance(value.op, Input) and isinstance(value.kind, TensorType)
    }
    sizes = dict.fromkeys(type_symbols(tuple(types.values())), 1)
    for type_ in types.values():
        first = type_.with_shape(type_.shape[:1])
        sizes |= dict.fromkeys(type_symbols((first,)), batch)
    return {key: type_.bind(sizes).dims for key, type_ in types.items()}


def plans_of(work: Work, module: Module, examples: int, threads: int) -> list[Plan]:
    """Plans of all functions, made for no session."""
    functions = work.functions.values()
    assigned = {key for graph in functions for key in graph.updates}
    fixed = frozenset(module.variables) - assigned
    shapes = work.shapes(examples)
    return [
        make_plan(Flat(graph, fixed), solve(graph, shapes[name]), workers=threads)
        for name, graph in work.functions.items()
    ]
