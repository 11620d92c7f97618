"""Int8 against float32 and against onnxruntime's int8: one thread, in turn.

    python benchmarks/int8.py [--models NAME ...] [--seconds 6]

Both engines quantise the same network with the same two batches of inputs, weights by
output channel.  All three sessions live in one process on one core; a figure is the
shortest of many runs.  Cosines are those of the first output and of onnxruntime's
float32 answer.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from models import skeletons
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

import edgewise as ew

MODELS = (
    "mobilenet_v2",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "efficientnet_lite0",
    "yolo_tiny_like",
)
BATCHES = 2
Feed = Mapping[str, np.ndarray[Any, Any]]


class Row(NamedTuple):
    """What was measured of a network: milliseconds, cosines, shares of the file."""

    name: str
    times: dict[str, float]
    ours: float
    theirs: float
    share: float

    @property
    def against_peer(self) -> float:
        """Time over the peer's."""
        return self.times["int8"] / self.times["peer"]

    @property
    def gain(self) -> float:
        """Time of float32 over that of int8."""
        return self.times["float"] / self.times["int8"]


class _Reader(CalibrationDataReader):  # type: ignore[misc]  # untyped there
    def __init__(self, feed: Feed) -> None:
        self._feeds: Iterator[Feed] = iter([feed] * BATCHES)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--seconds", type=float, default=6.0)
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, path, feed in skeletons(folder, list(given.models)):
            rows.append(_measured(model, path, feed, folder, given.seconds))
            print(rows[-1], flush=True)
    print(_table(rows))


def _measured(name: str, path: Path, feed: Feed, folder: Path, seconds: float) -> Row:
    model = ew.convert(path)
    small = ew.quantize(model, [feed] * BATCHES)
    small.save(folder / "int8.ew")
    share = (folder / "int8.ew").stat().st_size / path.stat().st_size
    peer = _peer(_peer_int8(path, feed, folder))
    (want, *_) = _peer(path).run(None, feed)
    one = ew.SessionConfig(threads=1)
    with ew.Session(model, one) as full, ew.Session(small, one) as bytes_:
        ours = next(iter(bytes_.run(feed).values()))
        runs = {
            "float": lambda: full.run(feed),
            "int8": lambda: bytes_.run(feed),
            "peer": lambda: peer.run(None, feed),
        }
        times = _best(runs, seconds)
    theirs = peer.run(None, feed)[0]
    return Row(name, times, _cosine(ours, want), _cosine(theirs, want), share)


def _best(runs: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The shortest run of each, in milliseconds, one after the other."""
    best = dict.fromkeys(runs, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], 1e3 * (time.perf_counter() - start))
    return best


def _peer(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options)


def _peer_int8(path: Path, feed: Feed, folder: Path) -> Path:
    """Static quantisation of onnxruntime, as it recommends for this hardware."""
    prepared, made = folder / "prepared.onnx", folder / "int8.onnx"
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(made),
        _Reader(feed),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options={"WeightSymmetric": True},
    )
    return made


def _cosine(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    a, b = (np.asarray(x, np.float64).ravel() for x in (a, b))
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def _table(rows: list[Row]) -> str:
    head = "| model | float32 | int8 | onnxruntime int8 | int8 / theirs | gain |"
    lines = [f"{head} cosine | theirs | file |", "|---|" + "---:|" * 8]
    for row in rows:
        times = " | ".join(f"{row.times[name]:.3f}" for name in row.times)
        ratios = f"{row.against_peer:.2f} | {row.gain:.2f}"
        cosines = f"{row.ours:.4f} | {row.theirs:.4f}"
        lines.append(
            f"| {row.name} | {times} | {ratios} | {cosines} | {row.share:.3f} |"
        )
    ratio, gain = (
        np.exp(np.mean(np.log([getattr(row, name) for row in rows])))
        for name in ("against_peer", "gain")
    )
    lines += [
        "",
        f"Geometric means: {ratio:.3f} of their time, {gain:.2f}x of float32.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
