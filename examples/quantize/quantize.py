"""A network of the EfficientNet kind, trained on digits, over bytes in several ways.

    python examples/quantize/quantize.py

Plain quantisation (one scale a weight, minmax) loses points on such networks; a scale
a channel does not, and a guard makes sure.  Takes a minute or two.  Needs numpy, onnx,
scikit-learn and edgewise.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from network import network
from sklearn.datasets import load_digits

import edgewise as ew
from edgewise_trainer import Trainer, optimizers

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

BRIGHTEST = 16.0  # pixels of the set are counts from 0 to 16
TRAINED = 1200  # of 1,797 digits; the next are for the guard, the last for the test
GUARDED = 300
EPOCHS = 6
CALIBRATION = 256


def digits() -> tuple[Images, Labels]:
    """All of them, shuffled."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.images))
    images = (data.images[order, None] / BRIGHTEST).astype(np.float32)
    return images, data.target[order].astype(np.int64)


def accuracy(model: ew.Model, images: Images, labels: Labels) -> float:
    """The share of digits that a model reads rightly."""
    with ew.Session(model) as session:
        return float((session(images).argmax(1) == labels).mean())


def main() -> None:
    """Train, quantise, compare."""
    images, labels = digits()
    train = images[:TRAINED], labels[:TRAINED]
    end = TRAINED + GUARDED
    guard = images[TRAINED:end], labels[TRAINED:end]
    test = images[end:], labels[end:]
    optimizer = optimizers.AdamW(3e-3)
    trainer = Trainer(ew.convert(network()), "cross_entropy", optimizer=optimizer)
    trainer.fit(train, epochs=EPOCHS, batch_size=32)
    model = trainer.export()

    calibration = [{"x": images[i : i + 32]} for i in range(0, CALIBRATION, 32)]
    keeps = {"max_drop": 0.0, "evaluate": lambda small: accuracy(small, *guard)}
    ways = {
        "one scale a weight": ew.QuantizeConfig(per_channel=False),
        "one a channel": ew.QuantizeConfig(),
        "one a channel, 8 bits": ew.QuantizeConfig(reduce_range=False),
        "one a channel, guarded": ew.QuantizeConfig(**keeps),
    }
    models = {"float32": model}
    models |= {way: ew.quantize(model, calibration, c) for way, c in ways.items()}
    with tempfile.TemporaryDirectory() as folder:
        for way, made in models.items():
            path = Path(folder) / "model.ew"
            made.save(path)
            size = path.stat().st_size / 1024
            print(f"{way:24}{accuracy(made, *test):8.4f}{size:9.1f} KiB")
    print(*models["one a channel, guarded"].quantization.notes, sep="\n")


if __name__ == "__main__":
    main()
