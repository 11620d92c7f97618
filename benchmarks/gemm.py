"""Products and convolutions on one core, against the multiply-add peak and NumPy.

    python benchmarks/gemm.py [seconds a row]

Competitors run in turn, so that all meet the same clock and the same neighbours; a
figure is the best of many. Markdown tables.
"""

from __future__ import annotations

import os

# Before numpy: its BLAS reads it once.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import ctypes
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from edgewise.ir.op import Array, Op
from edgewise.kernels import catalog
from edgewise.kernels.catalog.base import (
    Call,
    In,
    Launch,
    Out,
    Scratch,
    Temp,
    Word,
    f32_word,
    find,
)
from edgewise.ops import Conv, DepthwiseConv, Linear
from edgewise.runtime import library
from edgewise.types import DType, TensorType

SIZES = (256, 512, 1024)
PEAK_STEPS = 100_000
# (image, inputs, outputs, kernel, stride): every shape that takes time.
CONVOLUTIONS = {
    "ResNet-18": (
        (224, 3, 64, 7, 2),
        (56, 64, 64, 3, 1),
        (56, 64, 128, 3, 2),
        (28, 128, 128, 3, 1),
        (28, 128, 256, 3, 2),
        (14, 256, 256, 3, 1),
        (14, 256, 512, 3, 2),
        (7, 512, 512, 3, 1),
    ),
    "MobileNetV2": (
        (224, 3, 32, 3, 2),
        (112, 32, 16, 1, 1),
        (112, 16, 96, 1, 1),
        (56, 144, 24, 1, 1),
        (28, 32, 192, 1, 1),
        (14, 64, 384, 1, 1),
        (14, 576, 96, 1, 1),
        (7, 160, 960, 1, 1),
        (7, 320, 1280, 1, 1),
    ),
    "SqueezeNet": (
        (224, 3, 64, 3, 2),
        (55, 64, 16, 1, 1),
        (55, 16, 64, 3, 1),
        (27, 32, 128, 3, 1),
        (13, 64, 256, 3, 1),
        (13, 512, 1000, 1, 1),
    ),
}
DEPTHWISE = ((112, 32, 1), (112, 96, 2), (56, 144, 1), (14, 576, 1), (7, 960, 1))

REGISTERED = catalog  # importing it does that

Run = Callable[[], object]


class Bound:
    """The kernels of one call on arrays of its own, ready to run on one thread."""

    def __init__(self, op: Op, *inputs: Array) -> None:
        types = tuple(TensorType(DType.of(x.dtype), x.shape) for x in inputs)
        call = Call(op, types, op.infer_all(types))
        binding = find(call)
        if binding is None:
            sys.exit(f"{op}: no kernel")
        self.native, self.inputs = library.load(), [aligned(x) for x in inputs]
        self.outputs = [aligned(np.zeros(t.dims, t.dtype.numpy)) for t in call.outputs]
        self.temps = [aligned(np.zeros(size, np.uint8)) for size in binding.temps]
        self.scratch = aligned(np.zeros(max(binding.scratch, 1), np.uint8))
        self.words = [self._words(launch) for launch in binding.launches]
        rows = [
            (self.native.address(launch.symbol), words.ctypes.data, launch.tasks, 1)
            for launch, words in zip(binding.launches, self.words, strict=True)
        ]
        self.steps = np.array(rows, np.int64)

    def _words(self, launch: Launch) -> Array:
        return np.array([self._word(word) for word in launch.words], np.int64)

    def _word(self, word: Word) -> int:
        match word:
            case In(slot, offset):
                found = slot < len(self.inputs)
                return int(self.inputs[slot].ctypes.data) + offset if found else 0
            case Out(slot, offset):
                return int(self.outputs[slot].ctypes.data) + offset
            case Temp(slot, offset):
                return int(self.temps[slot].ctypes.data) + offset
            case Scratch():
                return int(self.scratch.ctypes.data)
        return word

    def __call__(self) -> int:
        """Run it once."""
        return self.native.run(0, self.steps.ctypes.data, 0, len(self.steps), 1)


def aligned(array: Array) -> Array:
    """A copy that begins at a cache line."""
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def best(runs: Sequence[Run], seconds: float) -> list[float]:
    """The shortest time of each, taken in turn."""
    found = [math.inf] * len(runs)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for index, run in enumerate(runs):
            start = time.perf_counter()
            run()
            found[index] = min(found[index], time.perf_counter() - start)
    return found


def peak() -> tuple[Run, int]:
    """Multiply-adds from registers to registers, and how many a run does."""
    out = aligned(np.zeros(16, np.float32))
    words = np.array([out.ctypes.data, f32_word(0.5), f32_word(0.5)], np.int64)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4)(
        library.load().address("peak_f32")
    )

    def run() -> object:
        return kernel(words.ctypes.data, 0, PEAK_STEPS, 0) or out

    return run, PEAK_STEPS * 6 * 16


def numbers(*shape: int) -> Array:
    """Seeded noise."""
    found: Array = np.random.default_rng(0).standard_normal(shape, np.float32)
    return found


def panels(k: int, n: int) -> Array:
    """Noise as packed weights."""
    return numbers(-(-n // 16), k, 16)


def products(seconds: float) -> float:
    """Square products; returns the peak, the best of all rows."""
    top, top_macs = peak()
    rows = []
    for n in SIZES:
        a, b, out = numbers(n, n), numbers(n, n), np.empty((n, n), np.float32)
        theirs = partial(np.matmul, a, b, out=out)
        rows.append(best([Bound(Linear(n), a, panels(n, n)), theirs, top], seconds))
    limit = 2 * top_macs / min(row[2] for row in rows) / 1e9
    print(f"peak: {limit:.1f} GFLOP/s\n")
    print("| GEMM | edgewise | NumPy | of peak |\n|---|--:|--:|--:|")
    for n, row in zip(SIZES, rows, strict=True):
        own, theirs_ = (2 * n**3 / taken / 1e9 for taken in row[:2])
        print(f"| {n} | {own:.1f} | {theirs_:.1f} | {own / limit:.0%} |")
    return limit


def convolutions(seconds: float, limit: float) -> None:
    """Shapes of real networks."""
    print("\n| convolution | GFLOP/s | of peak | us |\n|---|--:|--:|--:|")
    for name, shapes in CONVOLUTIONS.items():
        for size, inputs, outputs, kernel, stride in shapes:
            pad = kernel // 2
            op = Conv(outputs, (kernel,) * 2, (stride,) * 2, (pad,) * 4)
            weight = panels(kernel * kernel * inputs, outputs)
            run = Bound(op, numbers(1, size, size, inputs), weight)
            label = f"{name} {size}x{size}x{inputs} to {outputs}, {kernel}x{kernel}"
            report(f"{label} / {stride}", op, run, limit, seconds)
    for size, channels, stride in DEPTHWISE:
        op = DepthwiseConv((3, 3), (stride,) * 2, (1,) * 4)
        run = Bound(op, numbers(1, size, size, channels), numbers(9, channels))
        label = f"depthwise {size}x{size}x{channels}, 3x3 / {stride}"
        report(label, op, run, limit, seconds)


def report(label: str, op: Op, run: Bound, limit: float, seconds: float) -> None:
    """One row of the table."""
    types = [TensorType(DType.F32, x.shape) for x in (*run.inputs, *run.outputs)]
    macs = op.cost(tuple(types[:2]), tuple(types[2:])).macs
    (taken,) = best([run], seconds)
    speed = 2 * macs / taken / 1e9
    row = f"| {label} | {speed:.1f} | {speed / limit:.0%} | {taken * 1e6:.0f} |"
    print(row, flush=True)


if __name__ == "__main__":
    pause = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    convolutions(pause / 3, products(pause))
