"""A session: a model ready to run, with its memory, threads and plans."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, TypeVarTuple

from edgewise.border import TensorInfo, inputs_of, outputs_of
from edgewise.errors import ConfigError, DelegateError, ShapeError
from edgewise.format.read import read
from edgewise.ir.bodies import reachable
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.plan.plan import Plan
from edgewise.runtime import objects
from edgewise.runtime.bodies import Bodies, runnable
from edgewise.runtime.config import SessionConfig, chosen
from edgewise.runtime.function import Runnable
from edgewise.runtime.memory import MemoryReport
from edgewise.runtime.profile import Profile
from edgewise.runtime.turn import Turn
from edgewise.runtime.variables import constant_bytes
from edgewise.runtime.workspace import workspace
from edgewise.types import TensorType

Feed: TypeAlias = Mapping[str, Any]
Result = TypeVar("Result")
Given = TypeVarTuple("Given")
INFER = "infer"


class HoldsModule(Protocol):
    """A model, as far as a session needs it."""

    @property
    def module(self) -> Module:
        """Its functions and variables."""


class Session:
    """A model ready to run.

    Safe to call from several threads: callers take turns.  A plan is made for every new
    tuple of input shapes and kept.

    Args:
        model: A model, or the path of an ``.ew`` file, which is mapped, not copied.
        config: How to run it.
        function: Which of its functions runs: ``"infer"``, or another that the model
            has, such as ``"train_step"``.
        also: Further ones, over the same variables, which ``run`` must be told.

    Attributes:
        threads: Threads of a run.

    Raises:
        ModelFormatError: The file is damaged.
        ConfigError: The configuration does not fit this machine or this model.
        KernelLibraryError: There are no kernels for this processor.
    """

    def __init__(
        self,
        model: HoldsModule | str | os.PathLike[str],
        config: SessionConfig | None = None,
        *,
        function: str = INFER,
        also: Sequence[str] = (),
    ) -> None:
        config = chosen(config)
        if config.delegates:
            raise DelegateError(f"no delegate is called {config.delegates[0]!r}")
        module = _module_of(model)
        names = (function, *also)
        for name in names:
            if name not in module.functions:
                raise ConfigError(
                    f"got functions {sorted(module.functions)}; want {name!r} to run"
                )
        space = workspace(module, config, names)
        self._turn = Turn()
        self._bodies = Bodies(module.functions, space)
        space = space._replace(call=self._bodies)
        graphs = {name: module.functions[name] for name in names}
        self._functions = {
            name: runnable(graph, space) for name, graph in graphs.items()
        }
        # Within, lists share arrays with inputs and constants; the caller's must not.
        self._lists = {name: _lists(graph) for name, graph in graphs.items()}
        self._module, self._variables = module, space.variables
        self._name = function
        self._prepared, self.threads = space.prepared, space.threads
        for runs in self._functions.values():
            runs.warm()
        weakref.finalize(self, self._turn.end)

    def run(
        self,
        feed: Feed,
        out: Mapping[str, Array] | None = None,
        *,
        function: str | None = None,
    ) -> dict[str, Array]:
        """Compute all outputs.

        Args:
            feed: An array for every input, by name, of the input's element type;
                Python numbers and lists are taken where they fit it exactly.
            out: Arrays to write outputs to, by name; the others are made.
            function: Which function, where the session has several.

        Returns:
            The outputs by name, in the model's order; yours to keep.

        Raises:
            ShapeError: A missing or unknown input, or a shape that does not fit.
            DTypeError: An element type that does not fit.
            KernelError: The model stopped, as for an index out of range.
        """
        name = function or self._name
        runs = self._open(name)
        try:
            values = runs.inputs.values(feed)
            results = self._alone(runs.run, values, out)
            for position in self._lists[name]:
                results[position] = objects.copy(results[position])
        except MemoryError as error:
            raise _too_large(error) from error
        return dict(
            zip(self._module.functions[name].output_names, results, strict=True)
        )

    def __call__(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """Run on inputs in order; the output, or a tuple where there are several."""
        names = self._open().inputs.names
        if len(inputs) != len(names):
            raise ShapeError(f"got {len(inputs)} inputs; want {len(names)}: {names}")
        results = tuple(self.run(dict(zip(names, inputs, strict=True))).values())
        return results[0] if len(results) == 1 else results

    def plan(
        self, shapes: Mapping[str, tuple[int, ...]], *, function: str | None = None
    ) -> Plan | None:
        """The plan for inputs of these shapes, made now if no run has made it.

        None for a model of which some sizes are known only when it runs.
        """
        return self._alone(self._open(function).plan, shapes)

    def profile(self, feed: Feed, runs: int = 20) -> Profile:
        """Time every op, on average over ``runs`` runs after one to warm up."""
        if not isinstance(runs, int) or runs < 1:
            raise ConfigError(f"runs={runs!r}: want a whole number of at least 1")
        function = self._open()
        try:
            values = function.inputs.values(feed)
            return Profile(self._alone(function.profile, values, runs), runs)
        except MemoryError as error:
            raise _too_large(error) from error

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What a run takes."""
        return inputs_of(self._module.functions[self._name])

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What a run gives."""
        return outputs_of(self._module.functions[self._name])

    @property
    def memory(self) -> MemoryReport:
        """Bytes in use; arenas are those of the largest plans so far."""
        layouts = self._bodies.layouts
        functions = self._module.functions
        graphs = [functions[name] for name in reachable(functions, self._functions)]
        stored = [array.nbytes for array in self._variables.values()]
        self._open()
        own = [runs.layout for runs in self._functions.values() if runs.layout]
        layouts += sorted(own, key=lambda layout: layout.size)[-1:]  # one arena for all
        return MemoryReport(
            arena_bytes=sum(layout.size for layout in layouts),
            lower_bound_bytes=sum(layout.lower_bound for layout in layouts),
            weights_bytes=sum(stored) + sum(map(constant_bytes, graphs)),
            prepared_bytes=self._prepared.nbytes,
        )

    @property
    def variables(self) -> Mapping[str, Array]:
        """Arrays of the variables in use, by name, as they are stored.

        Those that the function assigns change with every run, and may be assigned to
        between runs; all others are read only.
        """
        return self._variables

    def close(self) -> None:
        """Give memory and threads back; further calls raise ``ConfigError``."""
        with self._turn.lock:
            self._functions = {}
            self._bodies.close()
            self._variables = {}
            self._prepared.close()

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _alone(self, work: Callable[[*Given], Result], *given: *Given) -> Result:
        """Do ``work`` when no other caller is at it."""
        turn, caller = self._turn, threading.get_ident()
        if turn.owner == caller:  # waiting for itself would never end
            raise ConfigError(
                "a run was asked for inside a run, as by a signal handler"
            )
        with turn.lock:
            turn.owner = caller
            try:
                return work(*given)
            finally:
                turn.owner = 0

    def _open(self, name: str | None = None) -> Runnable:
        if not self._functions:
            raise ConfigError("the session is closed; make another one")
        name = name or self._name
        if name not in self._functions:
            raise ConfigError(f"function={name!r}: want one of {list(self._functions)}")
        return self._functions[name]


def _lists(graph: Graph) -> list[int]:
    """Positions of outputs that are no arrays."""
    values = enumerate(graph.outputs)
    return [place for place, v in values if not isinstance(v.kind, TensorType)]


def _too_large(error: MemoryError) -> ShapeError:
    what = str(error) or "no memory is left"
    return ShapeError(f"a run needs more memory than there is: {what}; want less input")


def _module_of(model: object) -> Module:
    if isinstance(model, str | os.PathLike):
        return read(model)
    module = getattr(model, "module", None)
    if not isinstance(module, Module):
        kind = type(model).__name__
        raise ConfigError(f"got {kind}; want a model or the path of an .ew file")
    return module
