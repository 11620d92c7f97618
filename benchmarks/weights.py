"""Weights of few bits against float32: time, size and error of models and of one layer.

    python benchmarks/weights.py [--layer ROWSxKxN] [MODEL.onnx ...]

Sessions run in turn on one thread, so that all meet the same clock and the same
neighbours; a figure is the best of many.  A Markdown table.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import edgewise as ew
from edgewise.ir.op import Array
from edgewise.tools.inputs import random_inputs

KINDS = ("float16", "int8", "int4")
TURNS, LEAST = 400, 4.0  # at most so many turns, and so many seconds


def layer(rows: int, reduced: int, columns: int) -> onnx.ModelProto:
    """One linear layer."""
    generator = np.random.default_rng(0)
    weight = generator.normal(0, 0.05, (reduced, columns)).astype(np.float32)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, reduced])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    tensors = [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph([node], "layer", [x], [y], tensors)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def variants(model: ew.Model) -> dict[str, ew.Model]:
    """The model, and with weights of every kind."""
    found = {"float32": model}
    for kind in KINDS:
        config = ew.QuantizeConfig(weights=kind, activations="float32")
        found[kind] = ew.quantize(model, None, config)
    return found


def megabytes(model: ew.Model) -> float:
    """Size of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.ew"
        model.save(path)
        return path.stat().st_size / 1e6


def milliseconds(
    sessions: Mapping[str, ew.Session], feed: Mapping[str, Array]
) -> dict[str, float]:
    """The shortest run of each, in turns."""
    best = dict.fromkeys(sessions, np.inf)
    begun = time.perf_counter()
    for _ in range(TURNS):
        for name, session in sessions.items():
            start = time.perf_counter()
            session.run(feed)
            best[name] = min(best[name], 1e3 * (time.perf_counter() - start))
        if time.perf_counter() - begun > LEAST:
            break
    return best


def measure(name: str, model: ew.Model) -> None:
    """A row for every kind of weights."""
    models = variants(model)
    config = ew.SessionConfig(threads=1)
    sessions = {kind: ew.Session(each, config) for kind, each in models.items()}
    feed = random_inputs(model)
    want = next(iter(sessions["float32"].run(feed).values()))
    best = milliseconds(sessions, feed)
    for kind, session in sessions.items():
        got = next(iter(session.run(feed).values()))
        error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
        print(
            f"| {name} | {kind} | {megabytes(models[kind]):.2f} | {best[kind]:.3f} "
            f"| {best[kind] / best['float32']:.2f} | {error:.1e} |",
            flush=True,
        )
        session.close()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layer", action="append", default=[])
    parser.add_argument("models", nargs="*", type=Path)
    given = parser.parse_args()
    print("| model | weights | MB | ms | of float32 | relative error |")
    print("|---|---|--:|--:|--:|--:|")
    for text in given.layer:
        rows, reduced, columns = map(int, text.split("x"))
        measure(f"linear {text}", ew.convert(layer(rows, reduced, columns)))
    for path in given.models:
        measure(path.stem, ew.convert(path))


if __name__ == "__main__":
    main()
