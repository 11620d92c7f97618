"""``edgewise inspect``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, Sizes, guessed, parsed_sizes
from edgewise.cli.output import show_json, show_table

REAL = "f32"
QUANTIZATION = "edgewise.quantization"
LONGEST = 80  # characters of metadata in a table: a trainer writes thousands

if TYPE_CHECKING:  # --help imports no engine
    from edgewise.tools.report import FileReport


def inspect(
    model: Annotated[Path, typer.Argument(help="An .ew file.")],
    ops: Annotated[
        bool, typer.Option("--ops", help="List every op with shape and work.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare all bytes with their checksums.")
    ] = False,
    size: Sizes = None,
    json: Json = False,
) -> None:
    """Show inputs, outputs, sections, functions, precision and segments of a file.

    Example: edgewise inspect model.ew --ops
    """
    import edgewise
    from edgewise.tools.report import report

    if check:
        edgewise.check(model)
    sizes = parsed_sizes(size)
    loaded = edgewise.load(model)
    with guessed(loaded, None, size):
        result = report(model, sizes)
    if json:
        show_json(result.figures())
        return
    if check:
        print(f"{model}: every byte is as it was written")
    _show(result)
    if ops:
        print(loaded.summary(sizes))


def _show(result: FileReport) -> None:
    from edgewise.tools.report import shape_text
    from edgewise.tools.text import size_text

    parts = ", ".join(f"{name} {size_text(n)}" for name, n in result.sections.items())
    show_table(
        ("file", size_text(result.bytes)),
        [
            ("sections", parts),
            *(("input", f"{info.name}: {shape_text(info)}") for info in result.inputs),
            *(("output", f"{i.name}: {shape_text(i)}") for i in result.outputs),
            # What quantisation says of layers stands below.
            *(
                (name, _short(text))
                for name, text in result.metadata.items()
                if name != QUANTIZATION
            ),
        ],
    )
    show_table(
        ("function", "ops", "updates", "most used"),
        [
            (name, sum(f.ops.values()), f.updates, _most(f.ops))
            for name, f in result.functions.items()
        ],
    )
    show_table(
        ("values kept", "type", "tensors", "elements", "memory"),
        [
            (role, dtype, tensors, f"{elements:,}", size_text(count))
            for role, dtype, tensors, elements, count in (
                *result.variables,
                *(("constant", *constant) for constant in result.constants),
            )
        ],
    )
    if any(layer.weights != REAL or layer.reads != REAL for layer in result.layers):
        show_table(("layer", "op", "weights", "reads", "gives"), result.layers)
    sizes = ", ".join(f"{name}={size}" for name, size in result.sizes.items())
    show_table(
        (f"segment{f' ({sizes})' if sizes else ''}", "stage", "ops", "why"),
        [
            ("native" if s.native else "reference", s.stage, s.ops, s.reason)
            for s in result.segments
        ]
        + [("views", "", result.views, "the same bytes in another shape: no work")],
    )


def _short(text: str) -> str:
    """A text that leaves the table its width; ``--json`` has it whole."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _most(ops: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in list(ops.items())[:4])
