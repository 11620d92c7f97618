"""Makes the digits that the package ships: a trained network and held-out images.

    python examples/digits/make.py

Trains on four fifths of scikit-learn's handwritten digits and writes ``digits.onnx``
and ``digits.npz`` (the other fifth) into the package.  Needs numpy, scikit-learn, onnx.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from export import exported
from network import Array, Parameters, forward, initial
from sklearn.datasets import load_digits

SEED = 7
EPOCHS = 40
BATCH = 64
RATE = 3e-3
HELD_OUT = 360
BRIGHTEST = 16.0  # pixels of the set are counts from 0 to 16
TARGET = Path(__file__).parents[2] / "sdk" / "edgewise" / "demo_data"


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """Images moved by up to one pixel either way: the same digits, seen anew."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    dy, dx = rng.integers(0, 3, (2, len(images)))
    rows, columns = (d[:, None] + np.arange(8) for d in (dy, dx))
    each = np.arange(len(images))[:, None, None]
    moved: Array = padded[each, rows[:, :, None], columns[:, None, :]]
    return moved


def loss_gradient(logits: Array, labels: npt.NDArray[np.int64]) -> Array:
    """Gradient of the mean cross entropy."""
    shares: Array = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    return shares / np.float32(len(labels))


def adam(
    p: Parameters,
    grads: Parameters,
    m: Parameters,
    v: Parameters,
    step: int,
    rate: float,
) -> None:
    """One step of Adam (Kingma and Ba, 2015), in place."""
    b1, b2 = 0.9, 0.999
    for key, g in grads.items():
        m[key] += (1 - b1) * (g - m[key])
        v[key] += (1 - b2) * (g * g - v[key])
        mean, var = m[key] / (1 - b1**step), v[key] / (1 - b2**step)
        p[key] -= np.float32(rate) * mean / (np.sqrt(var) + np.float32(1e-8))


def train(
    images: Array, labels: npt.NDArray[np.int64]
) -> tuple[Parameters, Parameters]:
    """Parameters and running statistics after ``EPOCHS`` passes at a falling rate."""
    rng = np.random.default_rng(SEED)
    p, statistics = initial(rng)
    m, v = ({key: np.zeros_like(w) for key, w in p.items()} for _ in range(2))
    steps = EPOCHS * (len(images) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            pick = order[start : start + BATCH]
            x = shifted(images[pick], rng)
            logits, backward = forward(x, p, statistics, training=True)
            step += 1
            rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
            adam(p, backward(loss_gradient(logits, labels[pick])), m, v, step, rate)
    return p, statistics


def main() -> None:
    """Train, report, write."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(pixels))
    held, rest = order[:HELD_OUT], order[HELD_OUT:]
    images = (pixels / BRIGHTEST).astype(np.float32).reshape(-1, 8, 8, 1)
    p, statistics = train(images[rest], labels[rest])
    for name, part in (("trained on", rest), ("held out", held)):
        logits, _ = forward(images[part], p, statistics, training=False)
        accuracy = (logits.argmax(1) == labels[part]).mean()
        print(f"{name}: {len(part)} images, accuracy {accuracy:.4f}")
    TARGET.mkdir(exist_ok=True)
    onnx.save(exported(p, statistics), TARGET / "digits.onnx")
    np.savez_compressed(
        TARGET / "digits.npz",
        images=pixels[held].astype(np.uint8).reshape(-1, 1, 8, 8),
        labels=labels[held].astype(np.uint8),
    )


if __name__ == "__main__":
    main()
