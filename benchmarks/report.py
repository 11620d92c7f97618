"""What was measured, as a table, a chart and JSON."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One model at one number of threads.

    Attributes:
        model: Its name.
        threads: That every engine could use.
        milliseconds: Shortest run of each engine that gave the right answer.
        error: Of ours against onnxruntime, relative.
        share: Of the multiply-add peak of these cores that ours reached; None if
            nothing tells how much work the model is.
    """

    model: str
    threads: int
    milliseconds: dict[str, float]
    error: float
    share: float | None

    @property
    def rival(self) -> str:
        """The fastest engine that is not ours."""
        peers = self.milliseconds.keys() - {"edgewise"}
        return min(peers, key=lambda name: self.milliseconds[name])

    @property
    def ratio(self) -> float:
        """Our time in that of the rival; below 1 is faster."""
        return self.milliseconds["edgewise"] / self.milliseconds[self.rival]

    def __str__(self) -> str:
        """One line."""
        each = "  ".join(f"{k} {v:.3f}" for k, v in self.milliseconds.items())
        return f"{self.model} x{self.threads}: {each}  {self.ratio:.2f} of {self.rival}"


def geometric_mean(rows: Sequence[Row]) -> float:
    """Of the ratios to the best peer of each model."""
    return math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))


def table(rows: Sequence[Row]) -> str:
    """Markdown: one table for each number of threads, a geometric mean below it."""
    engines = list(dict.fromkeys(name for row in rows for name in row.milliseconds))
    parts = []
    for threads in sorted({row.threads for row in rows}):
        some = [row for row in rows if row.threads == threads]
        heads = ["model", *engines, "ratio to the best peer", "of peak", "error"]
        plural = "s" if threads > 1 else ""
        parts += [f"**{threads} thread{plural}**, milliseconds\n"]
        parts += [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
        parts += [_cells(row, engines) for row in some]
        mean = geometric_mean(some)
        parts += [f"\nGeometric mean of the ratios: {mean:.3f}.\n"]
    return "\n".join(parts)


def _cells(row: Row, engines: Sequence[str]) -> str:
    times = [row.milliseconds.get(name) for name in engines]
    cells = ["-" if found is None else f"{found:.3f}" for found in times]
    share = "-" if row.share is None else f"{row.share:.0%}"
    ratio = f"{row.ratio:.2f} ({row.rival})"
    return f"| {' | '.join([row.model, *cells, ratio, share, f'{row.error:.1e}'])} |"


def write(rows: Sequence[Row], folder: Path, name: str) -> None:
    """``NAME.json``, ``NAME.svg`` and ``NAME.md`` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "machine": platform.machine(),
        "date": time.strftime("%Y-%m-%d"),
        "rows": [row._asdict() | {"ratio": row.ratio} for row in rows],
    }
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / f"{name}.md").write_text(table(rows))
    chart(rows, folder / f"{name}.svg")


def chart(rows: Sequence[Row], path: Path) -> None:
    """Bars: the time of each engine in ours, for each model; below 1 is faster."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "edgewise"  # the same data, the same file
    from matplotlib import pyplot as plt

    counts = sorted({row.threads for row in rows})
    engines = list(dict.fromkeys(name for row in rows for name in row.milliseconds))
    figure, axes = plt.subplots(
        len(counts), 1, figsize=(11, 3.6 * len(counts)), squeeze=False, sharex=True
    )
    for axis, threads in zip(axes[:, 0], counts, strict=True):
        some = [row for row in rows if row.threads == threads]
        width = 0.8 / len(engines)
        for index, engine in enumerate(engines):
            heights = [_times_ours(row, engine) for row in some]
            places = [i + (index - len(engines) / 2) * width for i in range(len(some))]
            axis.bar(places, heights, width, label=engine)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(some)), [row.model for row in some], rotation=40)
        axis.set_ylabel(f"time / ours, {threads} thread(s)")
    axes[0, 0].legend(ncols=len(engines), fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _times_ours(row: Row, engine: str) -> float:
    return row.milliseconds.get(engine, 0.0) / row.milliseconds["edgewise"]
