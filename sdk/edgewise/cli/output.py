"""What commands print: tables, figures as JSON, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from edgewise import _env


def show_json(figures: Mapping[str, object]) -> None:
    """Figures for programs, on standard output."""
    print(json.dumps(figures, indent=2))


def show_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], title: str = ""
) -> None:
    """A table: framed on a terminal, aligned columns elsewhere."""
    if not sys.stdout.isatty():
        from edgewise.tools.text import table_text

        table = table_text(header, rows, _env.columns())
        print(f"{title}\n" if title else "", table, "\n", sep="")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    framed = Table(*header, title=title or None)
    for row in rows:
        framed.add_row(*(Text(str(cell)) for cell in row))
    Console().print(framed)


@contextmanager
def progress(
    text: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[[], None]]:
    """A bar on a terminal while the block runs, one plain line elsewhere.

    The plain line goes to standard output: standard error stays free for errors.

    Args:
        text: What is going on.
        total: Steps to come; None where they are not known.
        quiet: Print no line, because standard output is for a program.

    Yields:
        What to call after each step.
    """
    if not sys.stderr.isatty():
        if not quiet:
            print(text, flush=True)
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=total)
        yield lambda: bar.advance(task)
