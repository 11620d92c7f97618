"""``edgewise compress``: a model of fewer channels, zeros, few values or signs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, ModelFile, not_over, opened, want_place
from edgewise.cli.output import progress, show_json
from edgewise.errors import ConfigError

if TYPE_CHECKING:  # --help imports no engine
    from edgewise.model import Model


def compress(  # noqa: PLR0913, PLR0917 - an option each
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Argument(help="An .npz of inputs and --labels, to score.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; else by the model."),
    ] = None,
    channels: Annotated[
        float | None, typer.Option(help="Share of the channels to take out, as 0.5.")
    ] = None,
    prune: Annotated[
        float | None, typer.Option(help="Share of the weights to make zero, as 0.8.")
    ] = None,
    cluster: Annotated[
        int | None, typer.Option(help="Different values of each weight, as 16.")
    ] = None,
    binary: Annotated[
        bool, typer.Option("--binary", help="Keep of the weights the signs alone.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Weights that stay as they are, as 'head.*'. Repeatable."),
    ] = None,
    labels: Annotated[
        str, typer.Option(help="Name of the classes in the .npz of inputs.")
    ] = "y",
    json: Json = False,
) -> None:
    """Make a model smaller; `edgewise train` then makes up for what that costs.

    Zeros that are there already are always held in a bit each.

    Example: edgewise compress model.ew data.npz -o small.ew --prune 0.8 --labels y
    """
    from edgewise.compress import binarize, pack_sparse
    from edgewise.compress import cluster as clustered
    from edgewise.compress import prune as pruned
    from edgewise.tools.calibration import accuracy, load_examples

    if binary and cluster is not None:
        raise ConfigError("--binary, --cluster: want one of the two")
    target, kept = output or model.with_suffix(".small.ew"), tuple(keep or ())
    for source in (model, data):
        not_over(source, target)
    want_place(target)
    loaded = small = opened(model, quiet=json)
    score = None if data is None else accuracy(*load_examples(data, loaded, labels))
    before = _figures(loaded, score)
    with progress(f"compressing {model}", quiet=json):
        if channels is not None:
            small = pruned(small, channels, structured=True, keep=kept)
        if prune is not None:
            small = pruned(small, prune, keep=kept)
        if cluster is not None:
            small = clustered(small, cluster, keep=kept)
        if binary:
            small = binarize(small, keep=kept or None)
        pack_sparse(small).save(target)
    _show(model, target, [before, _figures(small, score)], json=json)


def _figures(model: Model, score: Callable[[Model], float] | None) -> dict[str, float]:
    """Latency of random inputs, and accuracy where there are examples."""
    from edgewise.runtime.config import SessionConfig
    from edgewise.runtime.session import Session
    from edgewise.tools.bench import measure
    from edgewise.tools.inputs import random_inputs

    found = {}
    with Session(model, SessionConfig(threads=1)) as session:
        feed = random_inputs(model)
        found["median_ms"] = measure(lambda: session.run(feed)).median * 1e3
    if score is not None:
        found["accuracy"] = score(model)
    return found


def _show(
    source: Path, target: Path, figures: list[dict[str, float]], *, json: bool
) -> None:
    from edgewise.tools.text import size_text

    sizes = [path.stat().st_size for path in (source, target)]
    if json:
        before, after = figures
        facts = {"file": str(target), "bytes": sizes[1], "source_bytes": sizes[0]}
        show_json(facts | {"before": before, "after": after})
        return
    for name in figures[0]:
        print(f"{name}: {figures[0][name]:.4f} before, {figures[1][name]:.4f} after")
    print(f"{target}: {size_text(sizes[1])} (was {size_text(sizes[0])})")
