"""``edgewise profile``: where the time of a run goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.options import (
    InputFile,
    Json,
    ModelFile,
    Seed,
    Sizes,
    Threads,
    feeds,
    guessed,
    not_over,
    opened,
)
from edgewise.cli.output import progress, show_json


def profile(
    model: ModelFile,
    inputs: InputFile = None,
    size: Sizes = None,
    seed: Seed = 0,
    threads: Threads = None,
    runs: Annotated[int, typer.Option(help="Runs to average over.", min=1)] = 20,
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace for chrome://tracing here.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the time, kernel and memory traffic of every step.

    Example: edgewise profile model.ew --runs 50 --trace trace.json
    """
    import edgewise

    for source in (model, inputs):
        not_over(source, trace)
    loaded = opened(model, quiet=json)
    arrays = feeds(loaded, inputs, size, seed)
    config = edgewise.SessionConfig(threads=threads)
    with (
        edgewise.Session(loaded, config) as session,
        guessed(loaded, inputs, size),
        progress(f"{runs} runs of {model}", quiet=json),
    ):
        result = session.profile(arrays, runs=runs)
    if trace:
        result.chrome_trace(trace)
    if json:
        show_json({"runs": runs, "rows": [row._asdict() for row in result.rows]})
    else:
        print(result.table())
