"""The demonstration: the shipped network reads the shipped digits."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session
from edgewise.tools.bench import measure

FOLDER = Path(__file__).parents[1] / "demo_data"
NETWORK = FOLDER / "digits.onnx"
BRIGHTEST = 16  # pixels are counts from 0 to 16


class Digits(NamedTuple):
    """What the demonstration measured; times in seconds."""

    images: int
    accuracy: float
    onnx_bytes: int
    file_bytes: int
    convert_seconds: float
    load_seconds: float
    latency_seconds: float
    arena_bytes: int
    weights_bytes: int


def held_out() -> tuple[Array, Array]:
    """Images ``f32[N, 1, 8, 8]`` not seen in training, and their labels."""
    with np.load(FOLDER / "digits.npz") as file:
        return file["images"].astype(np.float32) / BRIGHTEST, file["labels"]


def digits() -> Digits:
    """Convert, save, load, run: each part timed on the way."""
    from edgewise.convert import convert  # noqa: PLC0415 - brings onnx

    images, labels = held_out()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.ew"
        start = time.perf_counter()
        convert(NETWORK).save(path)
        saved = time.perf_counter()
        model = Model.load(path)
        loaded = time.perf_counter()
        with Session(model, SessionConfig(threads=1)) as session:
            one = {"image": images[:1]}
            timing = measure(lambda: session.run(one), runs=200)
            memory = session.memory  # of one digit: the arena grows with the next call
            logits = session.run({"image": images})["logits"]
        return Digits(
            images=len(images),
            accuracy=float((logits.argmax(1) == labels).mean()),
            onnx_bytes=NETWORK.stat().st_size,
            file_bytes=path.stat().st_size,
            convert_seconds=saved - start,
            load_seconds=loaded - saved,
            latency_seconds=timing.median,
            arena_bytes=memory.arena_bytes,
            weights_bytes=memory.weights_bytes,
        )
