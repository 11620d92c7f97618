"""The passes in their order, each with its switch and its report."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from edgewise.ir.bodies import reachable
from edgewise.ir.graph import Graph
from edgewise.ir.module import Module
from edgewise.passes import (
    canonical,
    fuse,
    fuse_attention,
    fuse_pad,
    recognise,
    recognise_attention,
    recognise_norm,
)
from edgewise.passes.fold import fold
from edgewise.passes.layout import layout
from edgewise.passes.lower import lower
from edgewise.passes.over_bytes import over_bytes
from edgewise.passes.rewrite import Rewriter
from edgewise.passes.share import share

logger = logging.getLogger(__name__)

Done: TypeAlias = "tuple[Graph, Counter[str]]"


class Switches(Protocol):
    """Which passes run; ``ConvertConfig`` is one.

    Attributes:
        fold_limit: Largest constant, in bytes, that folding may make.
    """

    @property
    def canonical(self) -> bool: ...  # noqa: D102 - named after the pass
    @property
    def fold(self) -> bool: ...  # noqa: D102
    @property
    def fold_limit(self) -> int: ...  # noqa: D102
    @property
    def share(self) -> bool: ...  # noqa: D102
    @property
    def layout(self) -> bool: ...  # noqa: D102
    @property
    def fuse(self) -> bool: ...  # noqa: D102
    @property
    def lower(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """What one run of a pass did.

    Attributes:
        name: The pass.
        count: How many changes it made.
        changes: How many of each kind: rules by name, folded ops by name.
    """

    name: str
    count: int
    changes: Mapping[str, int]


def optimise(
    module: Module, switches: Switches
) -> tuple[Module, tuple[PassReport, ...]]:
    """The module after all passes that are switched on, and what they did."""
    reports: list[PassReport] = []
    functions = dict(module.functions)
    for name, run in _order(switches):
        reports.append(_applied(name, run, functions))
    # What nothing reads any more may have been all that ran a body.
    kept = {key: functions[key] for key in reachable(functions, ["infer"])}
    module = Module(kept, module.variables, module.metadata)
    if switches.fuse:
        module, done = over_bytes(module)
        reports.append(_report("over bytes", done))
    if switches.fold:
        functions = dict(module.functions)
        reports.append(
            _applied("fold", lambda graph: fold(graph, switches.fold_limit), functions)
        )
        module = Module(functions, module.variables, module.metadata)
    if switches.lower:
        module, done = lower(module)
        reports.append(_report("lower", done))
    return module, tuple(reports)


def _applied(
    name: str, run: Callable[[Graph], Done], functions: dict[str, Graph]
) -> PassReport:
    """What a pass did to each function, which it replaces."""
    total: Counter[str] = Counter()
    for key, graph in functions.items():
        functions[key], done = run(graph)
        total += done
    return _report(name, total)


def _order(switches: Switches) -> list[tuple[str, Callable[[Graph], Done]]]:
    tidy: list[tuple[str, Callable[[Graph], Done]]] = []
    if switches.canonical:
        tidy.append(("canonical", Rewriter(canonical.RULES).apply))
    if switches.fold:
        limit = switches.fold_limit
        tidy.append(("fold", lambda graph: fold(graph, limit, weights=False)))
    if switches.share:
        tidy.append(("share", share))
    order = list(tidy)
    if switches.fuse:
        rules = (
            *recognise.RULES,
            *recognise_norm.RULES,
            *recognise_attention.RULES,
        )
        order.append(("recognise", Rewriter(rules).apply))
    if switches.layout:
        order += [("layout", layout), *tidy]
    if switches.fuse:
        fusing = (*fuse.RULES, *fuse_pad.RULES, *fuse_attention.RULES)
        order.append(("fuse", Rewriter(fusing).apply))
        order += [("fuse", Rewriter(fuse.LATE_RULES).apply), *tidy]
    return order


def _report(name: str, done: Counter[str]) -> PassReport:
    changes = dict(sorted(done.items()))
    if done:
        logger.debug("pass %s: %s", name, changes)
    return PassReport(name=name, count=done.total(), changes=changes)
