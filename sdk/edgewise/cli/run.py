"""``edgewise run``: one run of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from edgewise.cli.output import show_json, show_table

if TYPE_CHECKING:  # --help imports no engine
    import numpy.typing as npt

WIDEST = 60  # of a cell


def run(
    model: ModelFile,
    inputs: InputFile = None,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", help="An .npz to write the outputs to.")
    ] = None,
    size: Sizes = None,
    seed: Seed = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Run a model once and show what comes out.

    Example: edgewise run model.ew --inputs inputs.npz --outputs outputs.npz
    """
    import edgewise
    from edgewise.tools.inputs import save_arrays, spread

    for source in (model, inputs):
        not_over(source, outputs)
    loaded = opened(model, quiet=json)
    arrays = feeds(loaded, inputs, size, seed)
    config = edgewise.SessionConfig(threads=threads)
    with (
        edgewise.Session(loaded, config) as session,
        guessed(loaded, inputs, size),
    ):
        results = session.run(arrays)
    if outputs:
        save_arrays(outputs, results)
    rows = [_row(name, array) for name, array in spread(results).items()]
    if json:
        show_json({"outputs": rows})
    else:
        show_table(
            tuple(rows[0]) if rows else ("name",),
            [(name, *map(_cell, row)) for name, *row in map(dict.values, rows)],
        )


def _cell(figure: object) -> str:
    """A figure in a table: one short line."""
    from edgewise.tools.text import cut_text

    if isinstance(figure, list):  # a shape
        return "x".join(map(str, figure)) or "scalar"
    text = "-" if figure is None else str(figure)
    text = text if text.isprintable() else repr(text)
    return cut_text(text, WIDEST)


def _row(name: str, array: npt.NDArray[Any]) -> dict[str, object]:
    """An output in a few figures."""
    import numpy as np

    row: dict[str, object] = {
        "name": name,
        "dtype": str(array.dtype),
        "shape": list(array.shape),
    }
    if array.dtype == object:
        texts = sorted(array.ravel().tolist())
        ends = {"min": texts[0], "max": texts[-1]} if texts else {}
        row["dtype"] = "string"
        return row | {"min": None, "max": None, "mean": None, "finite": True} | ends
    numbers = array.size
    flat = array.astype(np.float64).ravel() if numbers else np.zeros(0)
    finite = flat[np.isfinite(flat)]
    for key, figure in (("min", np.min), ("max", np.max), ("mean", np.mean)):
        row[key] = float(f"{figure(finite):.6g}") if finite.size else None
    row["finite"] = finite.size == flat.size
    return row
