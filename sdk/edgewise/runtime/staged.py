"""A function whose sizes become known as it runs: stage by stage, each with plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from edgewise.errors import InternalError
from edgewise.ir.binders import learn
from edgewise.ir.graph import Constant, Graph, Input, Node, Variable
from edgewise.ir.op import Array
from edgewise.ir.reference import outputs_of_node
from edgewise.ir.sizes import solve
from edgewise.named import NamedTuple
from edgewise.plan.arena import Layout
from edgewise.plan.flat import ABSENT
from edgewise.plan.plan import Plan
from edgewise.plan.stages import Action, Stage, cut
from edgewise.runtime import objects
from edgewise.runtime.executable import Executable
from edgewise.runtime.feeds import Inputs
from edgewise.runtime.function import Function, Workspace
from edgewise.runtime.profile import Row, precision, profile_rows
from edgewise.runtime.targets import Targets


class _Step(NamedTuple):
    """A stage, the function that computes it, and the symbols it needs."""

    stage: Stage
    function: Function
    symbols: tuple[str, ...]


class _Times:
    """Seconds of everything a staged function did, over several runs."""

    def __init__(self) -> None:
        self.plans: dict[int, tuple[Executable, list[float]]] = {}
        self.actions: dict[int, Row] = {}


class Staged:
    """A function with binders.

    What one stage leaves for another, or for the caller, is kept outside the arena.

    Args:
        graph: What it computes.
        workspace: Where; stages share its arena, since they run one by one.

    Attributes:
        inputs: What it wants of its caller.
    """

    def __init__(self, graph: Graph, workspace: Workspace) -> None:
        self._graph, self._call = graph, workspace.call
        self._room = objects.Room(workspace.call.limit)
        names = [v.op.key for v in graph.inputs if isinstance(v.op, Input)]
        kinds = [value.kind for value in graph.inputs]
        self.inputs = Inputs(names, kinds, workspace.limit)
        found = cut(graph)
        self._outputs, self._kept = found.outputs, found.kept
        self._leaves = {
            number: _leaf(node, workspace.variables) for number, node in found.leaves
        }
        self._steps = tuple(
            _Step(
                stage, Function(stage.graph, workspace), tuple(sorted(stage.symbols()))
            )
            for stage in found.stages
        )

    @property
    def layout(self) -> Layout | None:
        """The largest arena so far."""
        made = [s.function.layout for s in self._steps if s.function.layout]
        return max(made, key=lambda layout: layout.size, default=None)

    def warm(self) -> None:
        """Plan the first stage, if it needs no size."""
        first = self._steps[0]
        if not first.symbols:
            first.function.where({})

    def plan(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan | None:
        """None: a run makes the plans of its stages."""
        del shapes
        return None

    def run(self, values: list[Any], out: Mapping[str, Array] | None) -> list[Any]:
        """Outputs, in order; those in ``out`` are written there."""
        return self._run(values, out, None)

    def profile(self, values: list[Any], runs: int) -> tuple[Row, ...]:
        """Mean times of every op over some runs after the first."""
        self._run(values, None, None)
        times = _Times()
        for _ in range(runs):
            self._run(values, None, times)
        rows: list[Row] = []
        for ready, seconds in times.plans.values():
            rows += profile_rows(ready.plan, [total / runs for total in seconds])
        rows += (
            row._replace(seconds=row.seconds / runs) for row in times.actions.values()
        )
        return tuple(rows)

    def _run(
        self,
        values: list[Any],
        out: Mapping[str, Array] | None,
        times: _Times | None,
    ) -> list[Any]:
        kept: list[Any] = [*values, *[None] * (self._kept - len(values))]
        for number, array in self._leaves.items():
            kept[number] = array
        self._room.clear()
        shapes = dict(zip(self.inputs.names, self.inputs.shapes(values), strict=True))
        sizes = solve(self._graph, shapes)
        for step in self._steps:
            self._stage(step, kept, sizes, times)
            for action in step.stage.actions:
                start = perf_counter()
                sizes = self._act(action, kept, sizes)
                if times is not None:
                    _note(times, action.node, perf_counter() - start, kept, action)
            for number in step.stage.drops:
                kept[number] = None
        return self._given(kept, values, out)

    def _stage(
        self,
        step: _Step,
        kept: list[Any],
        sizes: Mapping[str, int],
        times: _Times | None,
    ) -> None:
        stage, function, symbols = step
        ready = function.where({name: sizes[name] for name in symbols})
        inputs = [kept[number] for number in stage.reads]
        results = ready.empty_outputs()
        if times is None:
            ready.run(inputs, results)
        else:
            seconds = times.plans.setdefault(
                id(ready), (ready, [0.0] * len(ready.plan.ops))
            )[1]
            ready.timed(inputs, results, seconds)
        for number, result in zip(stage.writes, results, strict=True):
            kept[number] = result

    def _act(
        self, action: Action, kept: list[Any], sizes: dict[str, int]
    ) -> dict[str, int]:
        """Run a binder; the sizes that are known then."""
        node = action.node
        inputs = [None if n == ABSENT else kept[n] for n in action.reads]
        if node.op.gives():
            made = (inputs[0],)
        else:
            types = tuple(type_.bind(sizes) for type_ in node.types)
            op = node.op.bind(sizes)
            reads = (None if v is None else v.kind.bind(sizes) for v in node.inputs)
            op.infer_all(tuple(reads))  # sizes that the run found need not fit
            made = outputs_of_node(op, node.label, inputs, types, self._call)
        kinds = zip(action.writes, made, node.types, strict=True)
        for number, value, kind in kinds:
            kept[number] = _contiguous(objects.own(value))
            if kind.is_object:
                self._room.hold(node.op.name, kept[number], filter(_is_object, kept))
        return learn(node, made, sizes)

    def _given(
        self, kept: list[Any], values: Sequence[Any], out: Mapping[str, Array] | None
    ) -> list[Any]:
        """The outputs; what is not ours alone to give is copied."""
        seen = {id(value) for value in (*values, *self._leaves.values())}
        results = []
        for number in self._outputs:
            value = kept[number]
            shared = id(value) in seen and isinstance(value, np.ndarray)
            results.append(value.copy() if shared else value)
            seen.add(id(value))
        if out is None:
            return results
        return Targets(self._graph.output_names, results, out, ()).copied()


def _contiguous(value: Any) -> Any:
    return (
        np.require(value, requirements="C") if isinstance(value, np.ndarray) else value
    )


def _leaf(node: Node, variables: Mapping[str, Array]) -> Array:
    if isinstance(node.op, Constant):
        return node.op.array
    if isinstance(node.op, Variable):
        return variables[node.op.key]
    raise InternalError(f"{node} is kept between stages, but computed nowhere")


def _is_object(value: Any) -> bool:
    hasobject = isinstance(value, np.ndarray) and value.dtype.hasobject
    return hasobject or isinstance(value, list)


def _note(
    times: _Times, node: Node, seconds: float, kept: Sequence[Any], action: Action
) -> None:
    """Add the time of a binder."""
    numbers = (*action.reads, *action.writes)
    known = times.actions.get(id(node))
    times.actions[id(node)] = Row(
        op=node.op.name,
        name=node.label,
        kernel=None,
        precision=precision(node.op, node.types[0]),
        seconds=seconds + (known.seconds if known else 0.0),
        bytes=sum(getattr(kept[n], "nbytes", 0) for n in numbers if n != ABSENT),
    )
