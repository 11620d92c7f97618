"""``edgewise convert``: an ONNX file to an ``.ew`` file, or the other way round."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.options import Json, not_over, want_place
from edgewise.cli.output import progress, show_json
from edgewise.errors import ConfigError, EdgewiseError


def convert(
    source: Annotated[Path, typer.Argument(help="The ONNX file, or an .ew file.")],
    target: Annotated[
        Path | None, typer.Argument(help="The file to write; else named as the source.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The same as TARGET."),
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
    """Convert an ONNX model to one .ew file; from an .ew file, back to ONNX.

    Example: edgewise convert model.onnx -o model.ew --shape image=1,3,224,224

    Example: edgewise convert trained.ew trained.onnx
    """
    import edgewise
    from edgewise.tools.text import size_text

    back = source.suffix == ".ew"
    found = output or target or source.with_suffix(".onnx" if back else ".ew")
    not_over(source, found)
    want_place(found, ".onnx" if back else ".ew")
    if back and not (output or target) and found.exists():
        raise ConfigError(f"{found}: is there already; name it to write over it")
    if back and (shape or random):
        raise ConfigError("--shape, --random: want an ONNX file, not an .ew file")
    with progress(f"converting {source}", quiet=json):
        if back:
            _write(found, edgewise.load(source).to_onnx().SerializeToString())
        else:
            config = edgewise.ConvertConfig(input_shapes=_shapes(shape), random=random)
            edgewise.convert(source, config).save(found)
    before, after = source.stat().st_size, found.stat().st_size
    if json:
        show_json({"file": str(found), "bytes": after, "source_bytes": before})
    else:
        kind = ".ew" if back else "ONNX"
        print(f"{found}: {size_text(after)} ({kind}: {size_text(before)})")


def _write(target: Path, data: bytes) -> None:
    try:
        target.write_bytes(data)
    except OSError as error:
        raise EdgewiseError(f"{target}: cannot be written: {error.strerror}") from error


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
