"""Arguments that several commands share, and what they turn into."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.errors import ConfigError, KernelError, ShapeError

if TYPE_CHECKING:  # --help imports no engine
    import numpy.typing as npt

    from edgewise.model import Model

NAME = r"[^,=][^=]*?"  # a file may have commas in its names
NUMBER = "[0-9]{1,19}"
SIZE = f"{NAME}={NUMBER}"

ModelFile = Annotated[
    Path, typer.Argument(help="An .ew file, or an .onnx file to convert in memory.")
]
InputFile = Annotated[
    Path | None,
    typer.Option("--inputs", help="An .npz of arrays by input name; else random ones."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", "-t", help="Threads; all cores if left out.")
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        help="Symbolic sizes, as N=4 or H=8,W=9; 1 if left out. Repeatable.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of random inputs.")]
Json = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]


def opened(path: Path, *, quiet: bool = False) -> Model:
    """The model of a file; an ONNX file is converted on the way."""
    import edgewise
    from edgewise.cli.output import progress

    if path.suffix != ".onnx":
        return edgewise.load(path)
    with progress(f"converting {path}", quiet=quiet):
        return edgewise.convert(path)


def not_over(source: Path | None, target: Path | None) -> None:
    """Raise where a result would be written over the file it is made from."""
    if not source or not target or not source.exists() or not target.exists():
        return
    if source.samefile(target):
        raise ConfigError(f"{target}: would overwrite {source}; name another file")


def want_place(target: Path, suffix: str = ".ew") -> None:
    """Raise where a result cannot be written, before work is done for it."""
    other = {".ew": ".onnx", ".onnx": ".ew"}[suffix]
    if target.suffix == other:
        raise ConfigError(
            f"{target}: what is written is an {suffix} file; name it so (`edgewise "
            f"convert {target.stem}{suffix} {target.stem}{other}` makes the other)"
        )
    if not target.parent.is_dir():
        raise ConfigError(f"{target}: cannot be written: no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise ConfigError(f"{target}: cannot be written: {target.parent} is read-only")


def parsed_sizes(given: list[str] | None) -> dict[str, int]:
    """``["N=4", "H=8,W=9"]`` as ``{"N": 4, "H": 8, "W": 9}``."""
    sizes: dict[str, int] = {}
    for text in given or ():
        if not re.fullmatch(f"{SIZE}(,{SIZE})*", text):
            raise ConfigError(
                f"--size {text!r}: want NAME=NUMBER, like N=4, or several, like H=8,W=9"
            )
        for name, size in re.findall(rf"({NAME})=({NUMBER})(?:,|$)", text):
            sizes[name] = int(size)
    return sizes


@contextmanager
def guessed(model: Model, path: Path | None, sizes: list[str] | None) -> Iterator[None]:
    """Where sizes were taken to be 1 and do not fit, the error says how to choose."""
    from edgewise.tools.inputs import open_sizes

    try:
        yield
    except (ShapeError, KernelError) as error:
        names = sorted(open_sizes(model) - parsed_sizes(sizes).keys())
        if path is not None or not names:
            raise
        raise ShapeError(
            f"{error}; sizes that --size does not give were taken to be 1:"
            f" {', '.join(names)}; give what the model needs, as --size {names[-1]}=64"
        ) from error


def feeds(
    model: Model, path: Path | None, sizes: list[str] | None, seed: int
) -> dict[str, npt.NDArray[Any]]:
    """Inputs from a file, or seeded random ones."""
    from edgewise.tools.inputs import load_inputs, random_inputs

    if path is None:
        return random_inputs(model, seed=seed, sizes=parsed_sizes(sizes))
    if sizes:
        raise ConfigError("--size is for random inputs; --inputs brings its own sizes")
    return load_inputs(path)
