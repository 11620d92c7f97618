"""Runs of steps that one native call executes, and the steps that Python must do."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.ir.op import Op
from edgewise.kernels.catalog.base import Binding
from edgewise.named import NamedTuple


class Segment(NamedTuple):
    """Consecutive work of one kind.

    Attributes:
        native: Whether kernels do it; else the reference of one op does.
        nodes: Node numbers, in order; views are not among them, they cost nothing.
        reason: Why a reference must do it; empty for a native segment.
    """

    native: bool
    nodes: tuple[int, ...]
    reason: str


def cut(ops: Sequence[Op], bindings: Sequence[Binding | None]) -> tuple[Segment, ...]:
    """The segments of a plan: as few as the nodes without kernels allow."""
    segments: list[Segment] = []
    run: list[int] = []
    for index, op in enumerate(ops):
        if op.view:
            continue
        if bindings[index] is not None:
            run.append(index)
            continue
        if run:
            segments.append(Segment(native=True, nodes=tuple(run), reason=""))
            run = []
        reason = f"no kernel takes {op!r} on these types"
        segments.append(Segment(native=False, nodes=(index,), reason=reason))
    if run:
        segments.append(Segment(native=True, nodes=tuple(run), reason=""))
    return tuple(segments)
