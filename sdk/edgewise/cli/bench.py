"""``edgewise bench``: latency of a model."""

from __future__ import annotations

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
    opened,
)
from edgewise.cli.output import progress, show_json, show_table


def bench(
    model: ModelFile,
    inputs: InputFile = None,
    size: Sizes = None,
    seed: Seed = 0,
    threads: Threads = None,
    runs: Annotated[int, typer.Option(help="Timed runs.", min=1)] = 50,
    warmup: Annotated[int, typer.Option(help="Runs before them.", min=0)] = 5,
    json: Json = False,
) -> None:
    """Time a model: warm-up, then minimum, median and 90th percentile.

    Example: edgewise bench model.ew --threads 2 --runs 100 --json
    """
    import edgewise
    from edgewise.tools.bench import measure
    from edgewise.tools.text import size_text, time_text

    loaded = opened(model, quiet=json)
    arrays = feeds(loaded, inputs, size, seed)
    config = edgewise.SessionConfig(threads=threads)
    with (
        edgewise.Session(loaded, config) as session,
        guessed(loaded, inputs, size),
        progress(f"{runs} runs of {model}", runs, quiet=json) as tick,
    ):
        timing = measure(
            lambda: session.run(arrays), runs=runs, warmup=warmup, after_each=tick
        )
        memory = session.memory
    if json:
        show_json(
            {
                "model": str(model),
                "threads": threads,
                "warmup": warmup,
                **timing.figures(),
                "arena_bytes": memory.arena_bytes,
                "weights_bytes": memory.weights_bytes,
            }
        )
        return
    show_table(
        ("runs", "min", "median", "p90", "arena", "weights"),
        [
            (
                runs,
                *map(time_text, (timing.min, timing.median, timing.p90)),
                size_text(memory.arena_bytes),
                size_text(memory.weights_bytes),
            )
        ],
    )
