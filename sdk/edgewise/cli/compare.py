"""``edgewise compare``: every op of a model against its reference."""

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
    feeds,
    guessed,
    opened,
)
from edgewise.cli.output import progress, show_json

DIFFERENT = 1  # exit status where the numbers differ


def compare(
    model: ModelFile,
    inputs: InputFile = None,
    onnx: Annotated[
        Path | None,
        typer.Option("--onnx", help="Compare outputs with this file in onnxruntime."),
    ] = None,
    size: Sizes = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Check every op of a model against its reference; exit 1 where one differs.

    Example: edgewise compare model.ew --onnx model.onnx
    """
    from edgewise.tools import compare as tool

    loaded = opened(model, quiet=json)
    arrays = feeds(loaded, inputs, size, seed)
    with guessed(loaded, inputs, size), progress(f"comparing {model}", quiet=json):
        if onnx:
            result = tool.compare_with_onnxruntime(loaded, onnx, arrays)
        else:
            result = tool.compare(loaded, arrays)
    bad, odd = result.first_bad, result.first_not_finite
    if json:
        show_json(
            {
                "rows": [row._asdict() for row in result.rows],
                "first_bad": bad and bad._asdict(),
                "first_not_finite": odd and odd._asdict(),
            }
        )
    else:
        print(result)
    if bad:
        raise typer.Exit(DIFFERENT)
