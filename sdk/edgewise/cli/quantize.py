"""``edgewise quantize``: a model over small numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgewise.cli.options import Json, ModelFile, not_over, opened, want_place
from edgewise.cli.output import progress, show_json
from edgewise.errors import ConfigError

if TYPE_CHECKING:  # --help imports no engine
    from edgewise.model import Model


def quantize(  # noqa: PLR0913, PLR0917 - an option each
    model: ModelFile,
    data: Annotated[
        Path | None, typer.Argument(help="An .npz of typical inputs, by input name.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; else by the model."),
    ] = None,
    weights: Annotated[
        str, typer.Option(help="What weights are stored as: int8, int4, float16.")
    ] = "int8",
    activations: Annotated[
        str, typer.Option(help="What layers read: int8, int16, float32.")
    ] = "int8",
    method: Annotated[
        str,
        typer.Option(
            help="How ranges are found: minmax, moving_average, percentile,"
            " entropy, mse or admm."
        ),
    ] = "minmax",
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Weights that stay float32, as 'head.*'. Repeatable."),
    ] = None,
    equalize: Annotated[
        bool, typer.Option(help="Even out the ranges of channels first.")
    ] = False,
    bias_correction: Annotated[
        bool, typer.Option(help="Let biases take back what weights lose.")
    ] = False,
    max_drop: Annotated[
        float | None,
        typer.Option(help="How much accuracy may be lost, as 0.01; with --labels."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Name of the classes in the .npz of inputs.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a model that runs over small numbers, calibrated on typical inputs.

    Example: edgewise quantize model.ew data.npz -o small.ew --max-drop 0.01 --labels y
    """
    import edgewise
    from edgewise.tools.calibration import accuracy, load_examples

    if max_drop is not None and (labels is None or data is None):
        raise ConfigError("--max-drop: want --labels, too, to know what is lost")
    target = output or model.with_suffix(".int8.ew")
    for source in (model, data):
        not_over(source, target)
    want_place(target)
    loaded = opened(model, quiet=json)
    batches, score = None, None
    if data is not None:
        batches, classes = load_examples(data, loaded, labels)
        score = accuracy(batches, classes) if labels else None
    scores = {"before": score(loaded)} if score else {}
    config = edgewise.QuantizeConfig(
        weights=weights,
        activations=activations,
        method=method,
        keep=tuple(keep or ()),
        equalize=equalize,
        bias_correction=bias_correction,
        max_drop=max_drop,
        evaluate=score if max_drop is not None else None,
    )
    with progress(f"quantizing {model}", quiet=json):
        small = edgewise.quantize(loaded, batches, config)
    small.save(target)
    if score:
        scores["after"] = score(small)
    _show(model, target, small, scores, json=json)


def _show(
    source: Path,
    target: Path,
    small: Model,
    scores: dict[str, float],
    *,
    json: bool,
) -> None:
    from edgewise.tools.text import size_text

    report = small.quantization
    before, after = source.stat().st_size, target.stat().st_size
    if json:
        figures = {"file": str(target), "bytes": after, "source_bytes": before}
        rows = [layer._asdict() for layer in report.layers] if report else []
        notes = list(report.notes) if report else []
        show_json(figures | {"accuracy": scores, "layers": rows, "notes": notes})
        return
    print(report)
    if scores:
        print("accuracy: {before:.4f} before, {after:.4f} after".format(**scores))
    print(f"{target}: {size_text(after)} (was {size_text(before)})")
