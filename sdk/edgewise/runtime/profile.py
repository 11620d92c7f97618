"""Where the time of a run goes: one row for each op that does work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgewise.ir.op import Op
from edgewise.named import NamedTuple
from edgewise.plan.flat import ABSENT
from edgewise.plan.plan import Plan
from edgewise.types import TensorType, ValueType


class Row(NamedTuple):
    """One op of a run.

    Attributes:
        op: Name of the op.
        name: Name of its node in the source model.
        kernel: Native functions that do it, joined by ``+``; None: its reference.
        precision: Element type of its products, else of its result, as numpy calls it.
        seconds: Mean time of a run.
        bytes: Bytes it reads and writes, weights included.
    """

    op: str
    name: str
    kernel: str | None
    precision: str
    seconds: float
    bytes: int


class Profile(NamedTuple):
    """Times of a number of runs, op by op.

    Attributes:
        rows: In the order of execution.
        runs: Runs that were measured.
    """

    rows: tuple[Row, ...]
    runs: int

    @property
    def seconds(self) -> float:
        """Mean time of a run in all ops."""
        return sum(row.seconds for row in self.rows)

    def table(self) -> str:
        """The rows as text, and their sum."""
        total = self.seconds or 1.0
        cells = [("op", "kernel", "precision", "us", "%", "MB", "GB/s", "name")]
        cells += [
            (
                row.op,
                row.kernel or "(reference)",
                row.precision,
                f"{row.seconds * 1e6:.1f}",
                f"{100 * row.seconds / total:.1f}",
                f"{row.bytes / 1e6:.3f}",
                f"{row.bytes / max(row.seconds, 1e-9) / 1e9:.1f}",
                row.name,
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if 3 <= column <= 6 else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        summary = f"{len(self.rows)} ops, {self.seconds * 1e6:.1f} us, {self.runs} runs"
        return "\n".join([*lines, summary])

    def chrome_trace(self, path: str | Path) -> None:
        """Write the rows, end to end, for ``chrome://tracing`` and Perfetto."""
        import json  # noqa: PLC0415 - a run that is not profiled need not wait for it

        events = []
        start = 0.0
        for row in self.rows:
            events.append(
                {
                    "name": row.name or row.op,
                    "cat": row.op,
                    "ph": "X",
                    "ts": start * 1e6,
                    "dur": row.seconds * 1e6,
                    "pid": 1,
                    "tid": 1,
                    "args": {"kernel": row.kernel, "bytes": row.bytes},
                }
            )
            start += row.seconds
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def precision(op: Op, type_: ValueType) -> str:
    """How a row names what an op computes with."""
    if op.precision:
        return op.precision
    if not isinstance(type_, TensorType):
        return str(type_)
    return "string" if type_.is_object else str(type_.dtype.numpy)


def profile_rows(plan: Plan, seconds: Sequence[float]) -> tuple[Row, ...]:
    """Rows of a plan's nodes; those that are no work, as views, have none."""
    rows = []
    for segment in plan.segments:
        for index in segment.nodes:
            node = plan.flat.nodes[index]
            binding = plan.bindings[index]
            if binding is not None and not binding.launches:
                continue  # its result lies in another value
            symbols = [launch.symbol for launch in binding.launches] if binding else []
            values = (*plan.flat.reads[index], *plan.flat.writes[index])
            rows.append(
                Row(
                    op=plan.ops[index].name,
                    name=node.label,
                    kernel="+".join(dict.fromkeys(symbols)) or None,
                    precision=precision(
                        plan.ops[index], plan.types[plan.flat.writes[index][0]]
                    ),
                    seconds=seconds[index],
                    bytes=sum(plan.types[n].bytes for n in values if n != ABSENT),
                )
            )
    return tuple(rows)
