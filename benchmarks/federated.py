"""Federated rounds in one process: what they reach, what they take, how that grows.

    python benchmarks/federated.py quality
    python benchmarks/federated.py scale

``quality``: scikit-learn's digits on 20 devices of two labels each, 50 rounds of 10
devices and 5 passes, 64-32-10, plain descent at 0.1; every row the mean of three seeds.
``scale``: 20 rounds of one pass over 10 to 1,000 devices of 72 examples each, all or
ten a round, each row in a process of its own, its imports not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]
Data = tuple[Array, Array]

SEEDS = 3
TAIL = 5  # rounds whose accuracies are averaged
DEVICES = 20
EXAMPLES = 72  # of a device, where devices are many
RUNS: dict[str, dict[str, object]] = {
    "fedavg": {},
    "fedprox, mu 0.1": {"strategy": "fedprox"},
    "scaffold": {"strategy": "scaffold"},
    "fedavgm": {"strategy": "fedavgm"},
    "fedadam": {"strategy": "fedadam"},
    "fedyogi": {"strategy": "fedyogi"},
    "trimmed_mean": {"strategy": "trimmed_mean"},
    "fedmedian": {"strategy": "fedmedian"},
    "krum": {"strategy": "krum"},
    "fedavg, float16": {"codec": "float16"},
    "fedavg, int8": {"codec": "int8"},
    "fedavg, int4": {"codec": "int4"},
    "fedavg, topk:0.1": {"codec": "topk:0.1"},
    "scaffold, int4": {"strategy": "scaffold", "codec": "int4"},
    "fedavg, secure aggregation": {"secure_aggregation": True},
}


def network(seed: int = 0) -> onnx.ModelProto:
    """64-32-10: 2,410 parameters."""
    rng = np.random.default_rng(seed)
    arrays = {
        "w1": rng.normal(0, (2 / 64) ** 0.5, (32, 64)),
        "b1": np.zeros(32),
        "w2": rng.normal(0, (2 / 32) ** 0.5, (10, 32)),
        "b2": np.zeros(10),
    }
    weights = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in arrays.items()
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["logits"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])
    y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "mlp", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def digits() -> tuple[list[Data], Data]:
    """Two pieces of the digits sorted by label for each device, and 360 to test on."""
    from sklearn.datasets import load_digits

    from edgewise_federated.partition import by_labels

    data = load_digits()
    x, y = (data.data / 16).astype(np.float32), data.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    rows = by_labels(y[360:], DEVICES, shards=2, seed=1)
    return [(x[360:][r], y[360:][r]) for r in rows], (x[:360], y[:360])


def quality() -> None:
    """What each strategy and codec reaches, as rows of a table."""
    import edgewise as ew
    from edgewise_federated import FederatedConfig, simulate
    from edgewise_trainer import optimizers

    partitions, test = digits()
    print("| run | accuracy | bytes up | bytes down | seconds a round |")
    print("|---|---|---|---|---|")
    for name, settings in RUNS.items():
        ends, start = [], time.perf_counter()
        for seed in range(SEEDS):
            given: Mapping[str, object] = {
                "rounds": 50,
                "clients_per_round": 10,
                "local_epochs": 5,
                "batch_size": 10,
                "seed": seed,
            }
            config = FederatedConfig(**(given | settings))
            history = simulate(
                ew.convert(network(seed)),
                partitions,
                config,
                optimizer=optimizers.SGD(0.1),
                evaluate=test,
            )
            ends += [one.accuracy for one in history.rounds[-TAIL:]]
        last = history.rounds[-1]
        up, down = last.upload_bytes // 10, last.download_bytes // 10
        each = (time.perf_counter() - start) / SEEDS / 50
        print(f"| {name} | {np.mean(ends):.3f} | {up:,} | {down:,} | {each:.3f} |")


def scale() -> None:
    """Seconds and memory over the number of devices."""
    print("| devices | a round | examples | seconds | a device's part, ms | peak MiB |")
    print("|---|---|---|---|---|---|")
    for devices, asked, uneven in (
        (10, 10, ""),
        (100, 100, ""),
        (1000, 1000, ""),
        (1000, 10, ""),
        (1000, 1000, "uneven"),
    ):
        line = [sys.executable, __file__, "one", str(devices), str(asked), uneven]
        done = subprocess.run(line, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        each = found["seconds"] / 20 / asked * 1e3
        print(
            f"| {devices:,} | {asked:,} | {uneven or EXAMPLES} |"
            f" {found['seconds']:.2f} | {each:.2f} | {found['mib']} |"
        )


def one(devices: int, asked: int, uneven: str) -> None:
    """One run, and what it took."""
    import edgewise as ew
    from edgewise_federated import FederatedConfig, simulate
    from edgewise_trainer import optimizers

    rng = np.random.default_rng(0)
    sizes = rng.integers(20, 125, devices) if uneven else [EXAMPLES] * devices
    partitions = [
        (rng.random((size, 64), np.float32), rng.integers(0, 10, size))
        for size in sizes
    ]
    test = rng.random((360, 64), np.float32), rng.integers(0, 10, 360)
    config = FederatedConfig(rounds=20, clients_per_round=asked, batch_size=10)
    model = ew.convert(network())
    start = time.perf_counter()
    simulate(model, partitions, config, optimizer=optimizers.SGD(0.1), evaluate=test)
    print(json.dumps({"seconds": time.perf_counter() - start, "mib": peak()}))


def peak() -> int:
    """The most memory that this process has had, in MiB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(s.split()[1]) for s in status.splitlines() if "VmHWM" in s) // 1024


def main() -> None:
    """What the arguments name."""
    name, *rest = sys.argv[1:] or ["quality"]
    if name == "one":
        one(int(rest[0]), int(rest[1]), rest[2])
    else:
        {"quality": quality, "scale": scale}[name]()


if __name__ == "__main__":
    main()
