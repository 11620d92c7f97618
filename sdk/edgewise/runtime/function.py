"""One function of a module over a session's memory, with a plan for every shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from edgewise.ir.graph import Graph, Input
from edgewise.ir.op import Array
from edgewise.ir.sizes import solve
from edgewise.plan.flat import Flat
from edgewise.plan.plan import make_plan
from edgewise.runtime.executable import Executable, RunSteps
from edgewise.runtime.feeds import Inputs, Shapes
from edgewise.runtime.memory import Arena
from edgewise.runtime.native import Native


class Workspace(NamedTuple):
    """What the functions of a session share.

    Attributes:
        native: The kernel library.
        threads: Threads of a run.
        run_steps: Runs native steps on them.
        variables: Arrays of the module's variables.
        arena: Working memory.
    """

    native: Native
    threads: int
    run_steps: RunSteps
    variables: Mapping[str, Array]
    arena: Arena


class Function:
    """A function, planned anew for every tuple of input shapes.

    Args:
        graph: What it computes.
        workspace: Where.
        max_plans: Plans kept.
        direct: Variables that it may write while it runs.

    Attributes:
        inputs: What it wants of its caller.
        largest: The plan with the largest arena so far; ``None`` before the first.
    """

    def __init__(
        self,
        graph: Graph,
        workspace: Workspace,
        *,
        max_plans: int = 1,
        direct: Collection[str] = (),
    ) -> None:
        self._graph, self.flat = graph, Flat(graph)
        names = [v.op.key for v in graph.inputs if isinstance(v.op, Input)]
        self.inputs = Inputs(names, [value.type for value in graph.inputs])
        self.largest: Executable | None = None
        self._workspace, self._max_plans, self._direct = workspace, max_plans, direct
        self._ready: OrderedDict[Shapes, Executable] = OrderedDict()

    def at(self, shapes: Shapes) -> Executable:
        """The function planned for inputs of these shapes."""
        ready = self._ready.get(shapes)
        if ready is None:
            return self._plan(shapes)
        self._ready.move_to_end(shapes)
        return ready

    def _plan(self, shapes: Shapes) -> Executable:
        sizes = solve(self._graph, dict(zip(self.inputs.names, shapes, strict=True)))
        space = self._workspace
        plan = make_plan(self.flat, sizes, workers=space.threads, direct=self._direct)
        ready = Executable(
            plan, space.arena, space.variables, space.native, space.run_steps
        )
        _log(tuple(segment.reason for segment in plan.segments if segment.reason))
        self._ready[shapes] = ready
        if len(self._ready) > self._max_plans:
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
