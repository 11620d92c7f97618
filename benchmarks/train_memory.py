"""How much memory training takes, beside what was predicted.

    python benchmarks/train_memory.py MODEL.onnx BATCH [BUDGET ...]

Every row is a process of its own, which loads a file, trains three steps on one thread
with SGD and momentum, and tells by how much its peak resident size has grown since
before the model was loaded.  Batches are not counted.  After the rows for parts of the
parameters, one for each budget, such as 200MB, with all of them trained.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import edgewise as ew
from edgewise_trainer import Trainer, optimizers

PARTS = ("all", "norm", "bias", "lora:4", "last:1")
STEPS = 3
CLASSES = "cross_entropy"


def peak() -> int:
    """Largest resident size of this process so far, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def one(path: str, batch: int, trainable: str, budget: str) -> dict[str, Any]:
    """Train in this process, and tell what it took."""
    base = peak()
    model = ew.load(path)
    trainer = Trainer(
        model,
        CLASSES,
        optimizers.SGD(1e-4, momentum=0.9),
        trainable,
        batch_size=batch,
        threads=1,
        memory_budget=budget or None,
    )
    report = trainer.report
    (info,) = model.inputs
    shape = (batch, *(size if isinstance(size, int) else 1 for size in info.shape[1:]))
    x, y = np.full(shape, 0.1, np.float32), np.zeros(batch, np.int64)
    loaded, seconds = x.nbytes // 1024, []
    for _ in range(STEPS):
        start = time.perf_counter()
        trainer.step(x, y)
        seconds.append(time.perf_counter() - start)
    return {
        "what": budget or trainable,
        "predicted": (report.peak_bytes or 0) / 2**20,
        "measured": (peak() - base - loaded) / 2**10,
        "seconds": min(seconds),
        "expected": report.seconds,
        "notes": "; ".join(report.notes),
    }


def apart(*arguments: object) -> dict[str, Any]:
    """``one`` in a process of its own."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the table."""
    if sys.argv[1] == "--one":
        path, batch, trainable, budget = sys.argv[2:]
        print(json.dumps(one(path, int(batch), trainable, budget)))
        return
    source, batch, *budgets = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ew"
        ew.convert(source).save(path)
        print("| trained, or budget | MiB | predicted | ms a step | predicted | how |")
        print("|---|--:|--:|--:|--:|---|")
        cases = [(part, "") for part in PARTS] + [("all", size) for size in budgets]
        for trainable, budget in cases:
            row = apart(path, batch, trainable, budget)
            print(
                f"| {row['what']} | {row['measured']:.0f} | {row['predicted']:.0f}"
                f" | {row['seconds'] * 1e3:.0f} | {row['expected'] * 1e3:.0f}"
                f" | {row['notes']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
