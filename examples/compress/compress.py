"""A network for digits made smaller in every way: size, latency, accuracy of each.

    python examples/compress/compress.py

Starts from the network that the package ships, compresses it, trains it some epochs on
scikit-learn's digits without the held-out ones, and scores it on those.  Takes a
minute.  Needs numpy, onnx, scikit-learn and edgewise.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

import edgewise as ew
from edgewise import compress
from edgewise.tools.bench import measure
from edgewise_trainer import Trainer, losses, optimizers

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

DIGITS = Path(ew.__file__).parent / "demo_data"
BRIGHTEST = 16.0  # pixels of the set are counts from 0 to 16
RUNS = 50


class Data(NamedTuple):
    """Examples to learn from, and others to score by."""

    images: Images
    labels: Labels
    held_images: Images
    held_labels: Labels


def data() -> Data:
    """All digits, those that the package ships held out."""
    with np.load(DIGITS / "digits.npz") as file:
        held = file["images"].astype(np.float32) / BRIGHTEST
        held_labels = file["labels"].astype(np.int64)
    whole = load_digits()
    images = (whole.images[:, None] / BRIGHTEST).astype(np.float32)
    known = {image.tobytes() for image in held}
    learn = np.array([image.tobytes() not in known for image in images])
    labels = whole.target.astype(np.int64)
    return Data(images[learn], labels[learn], held, held_labels)


def trained(
    model: ew.Model,
    epochs: int,
    given: Data,
    loss: losses.Loss | None = None,
    quantize: ew.QuantizeConfig | None = None,
) -> ew.Model:
    """The model after some passes over the examples."""
    descent = optimizers.AdamW(2e-3)
    trainer = Trainer(model, loss, descent, quantize=quantize)
    trainer.fit((given.images, given.labels), epochs=epochs, batch_size=32)
    return trainer.export()


def show(name: str, model: ew.Model, given: Data, folder: Path) -> None:
    """One line: bytes of the file, shortest time of all held-out images, accuracy."""
    path = folder / "model.ew"
    compress.pack_sparse(model).save(path)
    with ew.Session(path, ew.SessionConfig(threads=1)) as session:
        seconds = measure(lambda: session(given.held_images), runs=RUNS).min
        found = np.asarray(session(given.held_images)).argmax(1)
    right = (found == given.held_labels).mean()
    size = path.stat().st_size
    print(f"{name:32} {size:>8,} bytes  {seconds * 1e3:6.2f} ms  {right:.4f}")


def main() -> None:
    """Every way, one after the other."""
    given, model = data(), ew.convert(DIGITS / "digits.onnx")
    half = compress.prune(model, 0.5, structured=True)
    taught = losses.distillation(model, temperature=2.0, weight=0.5)
    few = compress.cluster(compress.prune(model, 0.5), 16)
    int8 = ew.QuantizeConfig()
    calibration = [{"image": given.images[j : j + 32]} for j in range(0, 256, 32)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show("as it is", model, given, folder)
        show("half the channels", half, given, folder)
        show("  trained", trained(half, 8, given), given, folder)
        show("  taught", trained(half, 8, given, taught), given, folder)
        zeros = compress.prune(model, 0.8)
        show("a fifth of the weights", zeros, given, folder)
        show("  trained", trained(zeros, 4, given), given, folder)
        show("16 values", compress.cluster(model, 16), given, folder)
        show("half of them zero, 16 values", few, given, folder)
        show("  trained", trained(few, 4, given), given, folder)
        signs = compress.binarize(model)
        show("signs", signs, given, folder)
        show("  trained", trained(signs, 16, given), given, folder)
        bits = trained(compress.binarize(model, activations=True), 16, given)
        show("signs of images, too, trained", bits, given, folder)
        show("  as products of bits", compress.pack_binary(bits), given, folder)
        show("int8", ew.quantize(model, calibration, int8), given, folder)
        bytes_ = trained(model, 4, given, quantize=int8)
        show("  trained for it", bytes_, given, folder)
        learned = trained(model, 4, given, quantize=replace(int8, learn_steps=True))
        show("  with learned steps", learned, given, folder)
        int4 = ew.QuantizeConfig(weights="int4", activations="float32")
        show("int4 weights", ew.quantize(model, None, int4), given, folder)
        show("  trained for it", trained(model, 4, given, quantize=int4), given, folder)
        learned = trained(model, 4, given, quantize=replace(int4, learn_steps=True))
        show("  with learned steps", learned, given, folder)


if __name__ == "__main__":
    main()
