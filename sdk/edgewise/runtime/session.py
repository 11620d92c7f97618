"""A session: a model ready to run, with its memory, threads and plans."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, TypeVarTuple

from edgewise import _env
from edgewise.border import TensorInfo, inputs_of, outputs_of
from edgewise.errors import ConfigError, DelegateError, ShapeError
from edgewise.format.read import read
from edgewise.ir.bodies import reachable
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.ir.reference import NO_BODIES
from edgewise.plan.plan import Plan
from edgewise.runtime import library, objects
from edgewise.runtime.bodies import Bodies, runnable
from edgewise.runtime.config import SessionConfig, chosen
from edgewise.runtime.executable import RunSteps
from edgewise.runtime.function import Function, Runnable, Workspace
from edgewise.runtime.memory import Arena, MemoryReport, share_of_machine
from edgewise.runtime.native import Native
from edgewise.runtime.prepared import Preparations
from edgewise.runtime.profile import Profile
from edgewise.runtime.turn import Turn
from edgewise.runtime.variables import constant_bytes, derived, open_variables
from edgewise.types import TensorType

Feed: TypeAlias = Mapping[str, Any]
Result = TypeVar("Result")
Given = TypeVarTuple("Given")
INFER, PREPARE = "infer", "prepare"


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
    ) -> None:
        config = chosen(config)
        if config.delegates:
            raise DelegateError(f"no delegate is called {config.delegates[0]!r}")
        module = _module_of(model)
        if function not in module.functions:
            raise ConfigError(
                f"got functions {sorted(module.functions)}; want {function!r} to run"
            )
        space = _workspace(module, config, function)
        self._turn = Turn()
        graph = module.functions[function]
        self._bodies = Bodies(module.functions, space)
        self._function: Runnable | None = runnable(
            graph, space._replace(call=self._bodies)
        )
        self._names = graph.output_names
        # Within, lists share arrays with inputs and constants; the caller's must not.
        self._lists = [
            position
            for position, value in enumerate(graph.outputs)
            if not isinstance(value.kind, TensorType)
        ]
        self._module, self._variables = module, space.variables
        self._name = function
        self._prepared, self.threads = space.prepared, space.threads
        self._function.warm()
        weakref.finalize(self, self._turn.end)

    def run(
        self, feed: Feed, out: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Compute all outputs.

        Args:
            feed: An array for every input, by name, of the input's element type;
                Python numbers and lists are taken where they fit it exactly.
            out: Arrays to write outputs to, by name; the others are made.

        Returns:
            The outputs by name, in the model's order; yours to keep.

        Raises:
            ShapeError: A missing or unknown input, or a shape that does not fit.
            DTypeError: An element type that does not fit.
            KernelError: The model stopped, as for an index out of range.
        """
        function = self._open()
        try:
            values = function.inputs.values(feed)
            results = self._alone(function.run, values, out)
            for position in self._lists:
                results[position] = objects.copy(results[position])
        except MemoryError as error:
            raise _too_large(error) from error
        return dict(zip(self._names, results, strict=True))

    def __call__(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """Run on inputs in order; the output, or a tuple where there are several."""
        names = self._open().inputs.names
        if len(inputs) != len(names):
            raise ShapeError(f"got {len(inputs)} inputs; want {len(names)}: {names}")
        results = tuple(self.run(dict(zip(names, inputs, strict=True))).values())
        return results[0] if len(results) == 1 else results

    def plan(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan | None:
        """The plan for inputs of these shapes, made now if no run has made it.

        None for a model of which some sizes are known only when it runs.
        """
        return self._alone(self._open().plan, shapes)

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
        graphs = [functions[name] for name in reachable(functions, [self._name])]
        stored = [array.nbytes for array in self._variables.values()]
        largest = self._open().layout
        if largest is not None:
            layouts.append(largest)
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
            self._function = None
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

    def _open(self) -> Runnable:
        if self._function is None:
            raise ConfigError("the session is closed; make another one")
        return self._function


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


def _workspace(module: Module, config: SessionConfig, function: str) -> Workspace:
    """Memory and threads of a session, the derived variables computed."""
    native = library.load()
    threads, run_steps = _team(native, config)
    roots = [name for name in (PREPARE, function) if name in module.functions]
    arrays = open_variables(module, reachable(module.functions, roots))
    space = Workspace(
        native,
        threads,
        run_steps,
        arrays,
        Arena(config.arena_limit),
        config.memory_limit or share_of_machine(),
        NO_BODIES,
        Preparations(arrays, native, run_steps),
        _fixed(module, function) if config.winograd else frozenset(),
        config.max_plans,
    )
    if PREPARE in module.functions:
        # In memory of its own: what packing needs once, no run needs again.
        once = space._replace(arena=Arena())
        prepare = Function(module.functions[PREPARE], once, direct=derived(module))
        prepare.run([], None)
    return space


def _fixed(module: Module, function: str) -> frozenset[str]:
    """Variables that no run of a function assigns."""
    names = reachable(module.functions, [function])
    assigned = {key for name in names for key in module.functions[name].updates}
    return frozenset(module.variables) - assigned


def _team(native: Native, config: SessionConfig) -> tuple[int, RunSteps]:
    """Threads of a session, and how it runs steps on them."""
    threads = config.threads or _env.threads()
    if threads == 1 and config.cores == "auto":
        run = native.run
        return 1, lambda steps, first, last: run(0, steps, first, last, 1)
    from edgewise.runtime.pool import team  # noqa: PLC0415 - one thread needs none

    return team(native, threads, config.cores)
