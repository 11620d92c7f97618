"""What the functions of a session share: memory, threads, variables."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise import _env
from edgewise.ir.bodies import reachable
from edgewise.ir.module import Module
from edgewise.ir.reference import NO_BODIES
from edgewise.runtime import library
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.executable import RunSteps
from edgewise.runtime.function import Function, Workspace
from edgewise.runtime.memory import Arena, share_of_machine
from edgewise.runtime.native import Native
from edgewise.runtime.prepared import Preparations
from edgewise.runtime.variables import derived, open_variables

PREPARE = "prepare"


def workspace(
    module: Module, config: SessionConfig, functions: Sequence[str]
) -> Workspace:
    """Memory and threads of a session, the derived variables computed."""
    native = library.load()
    threads, run_steps = _team(native, config)
    roots = [name for name in (PREPARE, *functions) if name in module.functions]
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
        _fixed(module, functions) if config.winograd else frozenset(),
        config.max_plans,
    )
    if PREPARE in module.functions:
        # In memory of its own: what packing needs once, no run needs again.
        once = space._replace(arena=Arena())
        prepare = Function(module.functions[PREPARE], once, direct=derived(module))
        prepare.run([], None)
    return space


def _fixed(module: Module, functions: Sequence[str]) -> frozenset[str]:
    """Variables that no run of the functions assigns."""
    names = reachable(module.functions, functions)
    assigned = {key for name in names for key in module.functions[name].updates}
    return frozenset(module.variables) - assigned


def threads_of(config: SessionConfig) -> int:
    """How many threads a session of a configuration has."""
    return _team(library.load(), config)[0]


def _team(native: Native, config: SessionConfig) -> tuple[int, RunSteps]:
    """Threads of a session, and how it runs steps on them."""
    threads = config.threads or _env.threads()
    if threads == 1 and config.cores == "auto":
        run = native.run
        return 1, lambda steps, first, last: run(0, steps, first, last, 1)
    from edgewise.runtime.pool import team  # noqa: PLC0415 - one thread needs none

    return team(native, threads, config.cores)
