"""Latency, cold start and size against onnxruntime, as Markdown tables.

    python benchmarks/foundation.py [rounds]

Both engines run in this process, in turn, so that both meet the same clock and the same
neighbours; a figure is the best of all rounds.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime

import edgewise as ew
from edgewise.runtime import library
from edgewise.tools.inputs import random_inputs
from edgewise.tools.text import size_text

MODELS = (
    "mobilenet_v2",
    "resnet18",
    "squeezenet1_1",
    "ds_cnn_kws",
    "vit_tiny_patch16_224",
    "gru_kws",
)
THREADS = (1, 2)
SIZES = {"T": 64}  # sequence length where a model leaves it open
WARMUP = 3
STARTS = 6
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
# Start of clock after numpy: both engines need it, and a user has it anyway.
COLD = """
import json, sys, time
import numpy as np
feed = dict(np.load(sys.argv[2]))
start = time.perf_counter()
if sys.argv[3] == "edgewise":
    import edgewise as ew
    ew.Session(sys.argv[1], ew.SessionConfig(threads=1)).run(feed)
else:
    import onnxruntime
    session = onnxruntime.InferenceSession(
        sys.argv[1], providers=["CPUExecutionProvider"]
    )
    session.run(None, feed)
print(json.dumps(time.perf_counter() - start))
"""


def peer(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """The model in onnxruntime, with that many threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )


def best_of(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Shortest time of every call, taken in turn."""
    for call in calls:
        for _ in range(WARMUP):
            call()
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[index] = min(best[index], time.perf_counter() - start)
    return best


def sizes_of(model: ew.Model) -> dict[str, int]:
    """Values for the symbolic sizes that this model has."""
    named = {size for info in model.inputs for size in info.shape}
    return {name: size for name, size in SIZES.items() if name in named}


def latency(name: str, source: Path, target: Path, rounds: int) -> str:
    """A row of the latency table."""
    model = ew.load(target)
    feed = random_inputs(model, sizes=sizes_of(model))
    cells = [name]
    for threads in THREADS:
        other = peer(source, threads)
        with ew.Session(model, ew.SessionConfig(threads=threads)) as session:
            calls = [partial(session.run, feed), partial(other.run, None, feed)]
            ours, theirs = best_of(calls, rounds)
        cells += [f"{ours * 1e3:.2f}", f"{theirs * 1e3:.2f}", f"{ours / theirs:.2f}"]
    return f"| {' | '.join(cells)} |"


def cold_start(source: Path, target: Path, folder: Path) -> dict[str, float]:
    """Seconds from numpy to the first answer, in fresh processes, in turn."""
    feed = folder / "feed.npz"
    np.savez(feed, **random_inputs(ew.load(target)))
    best = {"edgewise": float("inf"), "onnxruntime": float("inf")}
    # An installed package has its bytecode; a checkout gets it from the first run.
    environment = {k: v for k, v in os.environ.items() if k != NO_BYTECODE}
    for _ in range(STARTS):
        for engine, path in (("edgewise", target), ("onnxruntime", source)):
            command = [sys.executable, "-c", COLD, str(path), str(feed), engine]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=environment
            )
            best[engine] = min(best[engine], json.loads(done.stdout))
    return best


def disk_size(package: Path, *without: str) -> int:
    """Bytes of the files of a package, but for those with the suffixes ``without``."""
    files = [p for p in package.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files if p.suffix not in {".pyc", *without})


def main() -> None:
    """Build the models, measure, print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    build = Path(__file__).parent / "models" / "build.py"
    print(f"{platform.machine()}, onnxruntime {onnxruntime.__version__}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, build, folder, *MODELS], check=True, capture_output=True
        )
        heads = [f"{e}, {t} thr (ms)" for t in THREADS for e in ("edgewise", "ort")]
        heads.insert(2, "ratio")
        print(f"| model | {' | '.join([*heads, 'ratio'])} |")
        print("|---" + "|---:" * 6 + "|")
        for model in MODELS:
            source, target = folder / f"{model}.onnx", folder / f"{model}.ew"
            ew.convert(source).save(target)
            print(latency(model, source, target, rounds), flush=True)
        first = "mobilenet_v2"
        cold = cold_start(folder / f"{first}.onnx", folder / f"{first}.ew", folder)
    print(f"\nImport, load and first answer of {first}, one thread: ", end="")
    print(", ".join(f"{engine} {s * 1e3:.0f} ms" for engine, s in cold.items()))
    code = disk_size(Path(ew.__file__).parent, ".so")
    kernels = library.load().path.stat().st_size
    peers = disk_size(Path(onnxruntime.__file__).parent)
    print(f"On disk: edgewise {size_text(code)} and {size_text(kernels)} of kernels;")
    print(f"onnxruntime {size_text(peers)}.")


if __name__ == "__main__":
    main()
