"""Functions that ops run: bodies of branches and loops, made when first called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgewise.errors import InternalError
from edgewise.ir.graph import Graph
from edgewise.plan.arena import Layout
from edgewise.runtime.function import Function, Runnable, Workspace
from edgewise.runtime.memory import Arena
from edgewise.runtime.native import closed


class Bodies:
    """The functions of a module, as an op may call them.

    A function has an arena of its own: that of its caller is in use meanwhile.  None
    calls itself, which reading a file has made sure of, so one arena each is enough.

    Args:
        functions: Their graphs, by name.
        space: The session's workspace.

    Attributes:
        limit: Bytes that results of unknown number may take together.
    """

    def __init__(self, functions: Mapping[str, Graph], space: Workspace) -> None:
        self._functions, self._space = functions, space
        self.limit = space.limit
        self._made: dict[str, Runnable] = {}

    @property
    def layouts(self) -> list[Layout]:
        """Arenas of those that have run."""
        return [f.layout for f in self._made.values() if f.layout is not None]

    def close(self) -> None:
        """Give memory and threads back; what was made holds this in turn."""
        self._made.clear()
        self._functions = {}
        self._space = self._space._replace(
            arena=Arena(), run_steps=closed, variables={}
        )

    def __call__(self, name: str, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Outputs of the function ``name``, in order."""
        function = self._made.get(name)
        if function is None:
            function = self._made[name] = self._make(name)
        return tuple(function.run(list(inputs), None))

    def _make(self, name: str) -> Runnable:
        if name not in self._functions:
            raise InternalError(f"there is no function {name!r} to run")
        arena = Arena(self._space.arena.limit)
        space = self._space._replace(arena=arena, call=self)
        return runnable(self._functions[name], space)


def runnable(graph: Graph, space: Workspace) -> Runnable:
    """A graph ready to run, in stages where only a run knows its sizes."""
    if not graph.binders:
        return Function(graph, space)
    from edgewise.runtime.staged import Staged  # noqa: PLC0415 - few models have stages

    return Staged(graph, space)
