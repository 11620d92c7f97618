"""A network for digits learns the hand of its user, and then a sign of their own.

    python examples/personalize/personalize.py

Five slanted digits of every class, then eight ticks, an eleventh class; what the
network read before must stay.  Takes seconds.  Needs numpy, onnx and edgewise.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

import edgewise as ew
from edgewise_trainer import optimizers
from edgewise_trainer.incremental import IncrementalLearner

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

DIGITS = Path(ew.__file__).parent / "demo_data"
BRIGHTEST = 16.0  # pixels of the set are counts from 0 to 16
TICK = 10  # the class that the user adds
SIZE = 8


def digits() -> tuple[Images, Labels]:
    """Digits that the shipped network was not trained on."""
    with np.load(DIGITS / "digits.npz") as file:
        images = (file["images"] / BRIGHTEST).astype(np.float32)
        return images, file["labels"].astype(np.int64)


def slanted(images: Images, slant: float = 0.7) -> Images:
    """The same digits by a hand that leans: rows move by ``slant`` pixels each."""
    found = np.zeros_like(images)
    places = np.arange(SIZE, dtype=np.float64)
    for row in range(SIZE):
        moved = places + slant * (row - (SIZE - 1) / 2)
        for image, out in zip(images[:, 0, row], found[:, 0, row], strict=True):
            out[:] = np.interp(moved, places, image, left=0.0, right=0.0)
    return found


def ticks(count: int, rng: np.random.Generator) -> Images:
    """Ticks: a short stroke down and a long one up, never twice the same."""
    points = np.linspace(0.0, 1.0, 25)[:, None]
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float64)
    found = np.zeros((count, 1, SIZE, SIZE), np.float32)
    for image in found[:, 0]:
        start, turn, end = np.array([(1, 4), (3, 6.5), (6.5, 0.5)]) + rng.normal(
            0, 0.4, (3, 2)
        )
        down, up = start + points * (turn - start), turn + points * (end - turn)
        for px, py in (*down, *up):
            ink = np.exp(-((x - px) ** 2 + (y - py) ** 2) / 0.5)
            np.maximum(image, ink, out=image)
    return found


def told(learner: IncrementalLearner, tests: dict[str, tuple[Images, Labels]]) -> str:
    """How much of each test is read correctly."""
    found = {name: learner.evaluate(test)["accuracy"] for name, test in tests.items()}
    return ", ".join(f"{name} {part:.1%}" for name, part in found.items())


def taught(
    learner: IncrementalLearner, name: str, x: Images, y: Labels, epochs: int = 15
) -> None:
    """Learn a handful, and tell what became of it."""
    report = learner.learn((x, y), epochs, batch_size=16)
    seconds = sum(epoch.seconds for epoch in report.history.epochs)
    print(f"{len(y)} {name} in {seconds:.2f} s, {report}")


def main() -> None:
    """Learn the hand, learn the sign, and run what was learned."""
    rng = np.random.default_rng(0)
    images, labels = digits()
    own = slanted(images)
    mine = np.concatenate([np.flatnonzero(labels == kind)[:5] for kind in range(10)])
    others = np.setdiff1d(np.arange(len(labels)), mine)
    known, keep, test = others[:100], others[100:180], others[180:]
    tests = {
        "digits": (images[test], labels[test]),
        "slanted": (own[test], labels[test]),
    }
    with tempfile.TemporaryDirectory() as folder:
        learner = IncrementalLearner(
            ew.convert(DIGITS / "digits.onnx"),
            method="replay",
            optimizer=optimizers.AdamW(2e-3),
            replay_bytes=20_000,
            store=Path(folder) / "examples.db",
            keep=(images[keep], labels[keep]),
            max_drop=0.03,
            known="all",
        )
        learner.remember((images[known], labels[known]))
        print("as shipped:", told(learner, tests))
        taught(learner, "slanted digits", own[mine], labels[mine])
        print("then:", told(learner, tests))
        taught(learner, "ticks", ticks(8, rng), np.full(8, TICK), epochs=30)
        tests["ticks"] = (ticks(40, rng), np.full(40, TICK))
        print("then:", told(learner, tests))
        wrong = (labels[mine] + 1) % 10
        taught(learner, "digits with wrong labels", images[mine], wrong)
        print("still:", told(learner, tests))
        print(f"{len(learner.replay)} examples are kept: {learner.replay.classes}")
        learner.close()
    with ew.Session(learner.export()) as session:
        logits = session.run({"image": ticks(1, rng)})["logits"]
        print(f"of {logits.shape[1]} classes a new tick is read as {logits.argmax()}")


if __name__ == "__main__":
    main()
