"""One function of a module over a session's memory, with a plan for every shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, Protocol, TypeAlias

from edgewise.ir.graph import Graph, Input
from edgewise.ir.op import Array, Call
from edgewise.ir.sizes import solve
from edgewise.named import NamedTuple
from edgewise.plan.arena import Layout
from edgewise.plan.flat import Flat
from edgewise.plan.plan import Plan, make_plan
from edgewise.runtime.executable import Executable, RunSteps
from edgewise.runtime.feeds import Inputs
from edgewise.runtime.memory import Arena
from edgewise.runtime.native import Native
from edgewise.runtime.prepared import Preparations
from edgewise.runtime.profile import Row, profile_rows
from edgewise.runtime.targets import Targets

# Shapes of the inputs, or sizes of all symbols.
Key: TypeAlias = tuple[Any, ...]


class Workspace(NamedTuple):
    """What the functions of a session share.

    Attributes:
        native: The kernel library.
        threads: Threads of a run.
        run_steps: Runs native steps on them.
        variables: Arrays of the module's variables.
        arena: Working memory; functions that run at one time have one each.
        limit: Bytes that a plan may take with its outputs.
        call: Runs functions that are bodies of ops.
        prepared: Other forms of the variables, for kernels.
        fixed: Variables of which there may be any: no run assigns them.
        max_plans: Plans kept for each function.
    """

    native: Native
    threads: int
    run_steps: RunSteps
    variables: Mapping[str, Array]
    arena: Arena
    limit: int
    call: Call
    prepared: Preparations
    fixed: Collection[str] = ()
    max_plans: int = 1


class Runnable(Protocol):
    """A function that runs, in one piece or in stages."""

    @property
    def inputs(self) -> Inputs:
        """What it wants of its caller."""

    @property
    def layout(self) -> Layout | None:
        """The largest arena so far; ``None`` before the first plan."""

    def warm(self) -> None:
        """Plan what is known before any input is."""

    def plan(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan | None:
        """The plan for inputs of these shapes; ``None`` where a run makes it."""

    def run(self, values: list[Any], out: Mapping[str, Array] | None) -> list[Any]:
        """Outputs, in order; those in ``out`` are written there."""

    def profile(self, values: list[Any], runs: int) -> tuple[Row, ...]:
        """Mean times of every op over some runs after the first."""


class Function:
    """A function, planned anew for every tuple of input shapes.

    Args:
        graph: What it computes.
        workspace: Where.
        direct: Variables that it may write while it runs.

    Attributes:
        inputs: What it wants of its caller.
        largest: The plan with the largest arena so far; ``None`` before the first.
    """

    def __init__(
        self, graph: Graph, workspace: Workspace, *, direct: Collection[str] = ()
    ) -> None:
        self._graph, self.flat = graph, Flat(graph, workspace.fixed)
        names = [v.op.key for v in graph.inputs if isinstance(v.op, Input)]
        kinds = [value.kind for value in graph.inputs]
        self.inputs = Inputs(names, kinds, workspace.limit)
        self.largest: Executable | None = None
        self._workspace, self._direct = workspace, direct
        self._ready: OrderedDict[Key, Executable] = OrderedDict()

    @property
    def layout(self) -> Layout | None:
        """The largest arena so far."""
        return self.largest.plan.layout if self.largest else None

    def warm(self) -> None:
        """Plan for the only shapes there can be."""
        shapes = [getattr(type_, "shape", ()) for type_ in self.inputs.types]
        if all(type_.is_static for type_ in self.inputs.types):
            self.at(tuple(shapes))

    def plan(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan | None:
        """The plan for inputs of these shapes."""
        return self.at(tuple([shapes[name] for name in self.inputs.names])).plan

    def at(self, shapes: Key) -> Executable:
        """The function planned for inputs of these shapes."""
        ready = self._ready.get(shapes)
        if ready is None:
            named = dict(zip(self.inputs.names, shapes, strict=True))
            return self._plan(shapes, solve(self._graph, named))
        self._ready.move_to_end(shapes)
        return ready

    def where(self, sizes: Mapping[str, int]) -> Executable:
        """The function planned for these sizes of all its symbols."""
        key = tuple(sizes.values())
        ready = self._ready.get(key)
        if ready is None:
            return self._plan(key, sizes)
        self._ready.move_to_end(key)
        return ready

    def run(self, values: list[Any], out: Mapping[str, Array] | None) -> list[Any]:
        """Outputs, in order; those in ``out`` are written there."""
        ready = self.at(self.inputs.shapes(values))
        results = ready.empty_outputs()
        if out is None:
            ready.run(values, results)
            return results
        targets = Targets(self.flat.output_names, results, out, values)
        ready.run(values, targets.arrays)
        return targets.finish()

    def profile(self, values: list[Any], runs: int) -> tuple[Row, ...]:
        """Mean times of every op over some runs after the first."""
        ready = self.at(self.inputs.shapes(values))
        results = ready.empty_outputs()
        ready.run(values, results)
        seconds = [0.0] * len(ready.plan.ops)
        for _ in range(runs):
            ready.timed(values, results, seconds)
        return profile_rows(ready.plan, [total / runs for total in seconds])

    def _plan(self, key: Key, sizes: Mapping[str, int]) -> Executable:
        space = self._workspace
        plan = make_plan(
            self.flat,
            sizes,
            workers=space.threads,
            direct=self._direct,
            limit=space.limit,
        )
        ready = Executable(
            plan,
            space.arena,
            space.variables,
            space.native,
            space.run_steps,
            space.call,
            space.prepared,
        )
        _log(tuple(segment.reason for segment in plan.segments if segment.reason))
        self._ready[key] = ready
        if len(self._ready) > space.max_plans:
            self._ready.popitem(last=False)
        if self.largest is None or plan.layout.size > self.largest.plan.layout.size:
            self.largest = ready
        return ready


def _log(reasons: tuple[str, ...]) -> None:
    if reasons:
        import logging  # noqa: PLC0415 - 5 ms that a run of kernels alone need not pay

        logger = logging.getLogger(__name__)
        for reason in reasons:
            logger.debug("%s", reason)
