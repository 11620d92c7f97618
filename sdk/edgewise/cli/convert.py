"""``edgewise convert``: an ONNX file to an ``.ew`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.options import Json, not_over
from edgewise.cli.output import progress, show_json
from edgewise.errors import ConfigError


def convert(
    source: Annotated[Path, typer.Argument(help="The ONNX file.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; else by the source."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="Shape of an input, as image=N,3,224,224. Repeatable."),
    ] = None,
    random: Annotated[
        bool, typer.Option(help="Take operators that draw at random.")
    ] = False,
    json: Json = False,
) -> None:
    """Convert an ONNX model to one .ew file.

    Example: edgewise convert model.onnx -o model.ew --shape image=1,3,224,224
    """
    import edgewise
    from edgewise.tools.text import size_text

    target = output or source.with_suffix(".ew")
    not_over(source, target)
    config = edgewise.ConvertConfig(input_shapes=_shapes(shape), random=random)
    with progress(f"converting {source}", quiet=json):
        model = edgewise.convert(source, config)
    model.save(target)
    before, after = source.stat().st_size, target.stat().st_size
    if json:
        show_json({"file": str(target), "bytes": after, "source_bytes": before})
    else:
        print(f"{target}: {size_text(after)} (ONNX: {size_text(before)})")


def _shapes(given: list[str] | None) -> dict[str, tuple[int | str, ...]] | None:
    """``["x=N,3"]`` as ``{"x": ("N", 3)}``."""
    if not given:
        return None
    shapes: dict[str, tuple[int | str, ...]] = {}
    for text in given:
        name, _, sizes = text.rpartition("=")
        if not name:
            raise ConfigError(f"--shape {text!r}: want INPUT=SIZE,SIZE, like x=N,3")
        parts = [part.strip() for part in sizes.split(",")] if sizes else []
        shapes[name] = tuple(int(p) if p.isdecimal() else p for p in parts)
    return shapes
