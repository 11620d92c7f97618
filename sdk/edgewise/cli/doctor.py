"""``edgewise doctor``: what this machine offers, and whether edgewise works on it."""

from __future__ import annotations

import typer

from edgewise.cli.options import Json
from edgewise.cli.output import show_json, show_table

SICK = 1  # exit status where something that is needed does not work


def doctor(json: Json = False) -> None:
    """Show the processor, its cores, the kernel library, and what is installed.

    Example: edgewise doctor --json
    """
    from edgewise.tools.doctor import examine

    report = examine()
    if json:
        show_json(report.figures())
    else:
        show_table(("what", "found"), report.rows())
        for problem in report.problems:
            print(f"problem: {problem}")
    if report.problems:
        raise typer.Exit(SICK)
