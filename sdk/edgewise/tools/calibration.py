"""Examples in a file, as batches to calibrate with and to score models by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from edgewise.errors import ConfigError
from edgewise.ir.op import Array
from edgewise.model import Model
from edgewise.runtime.session import Session
from edgewise.tools.inputs import load_inputs

BATCH = 32  # examples, where the model takes any number

Batches = Sequence[Mapping[str, Array]]


def load_examples(
    path: Path, model: Model, labels: str | None = None
) -> tuple[Batches, Array]:
    """Batches of inputs, and the classes of all examples.

    The array beside the labels is the input of a model that has one, whatever its name.

    Args:
        path: An ``.npz`` file.
        model: What takes them.
        labels: Name of the classes in the file; None: there are none.

    Raises:
        ConfigError: Arrays are missing, or are not as many as the others.
    """
    arrays = load_inputs(path)
    held = ", ".join(sorted(arrays)) or "nothing"
    classes = np.zeros(0, np.int64) if labels is None else arrays.pop(labels, None)
    if classes is None:
        raise ConfigError(f"{path}: holds {held}; want labels called {labels!r}")
    names = [info.name for info in model.inputs]
    if len(names) == len(arrays) == 1:
        arrays = dict(zip(names, arrays.values(), strict=True))
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ConfigError(f"{path}: holds {held}; want inputs {', '.join(missing)}")
    inputs = {name: arrays[name] for name in names}
    counted = inputs if labels is None else inputs | {"labels": classes}
    counts = {name: len(array) if array.ndim else 0 for name, array in counted.items()}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        told = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ConfigError(f"{path}: examples by array: {told}; want as many of each")
    return _batches(inputs, _batch(model)), classes


def accuracy(batches: Batches, classes: Array) -> Callable[[Model], float]:
    """Scores a model by the share of examples whose class its first output has."""

    def score(model: Model) -> float:
        with Session(model) as session:
            outputs = [next(iter(session.run(feed).values())) for feed in batches]
        _want_classes(classes, outputs[0].shape[-1])
        found = np.concatenate([output.argmax(-1) for output in outputs])
        known = classes[: len(found)]
        if found.shape != known.shape:
            raise ConfigError(
                f"labels: got {list(known.shape)} for outputs {list(found.shape)};"
                " want one class an example"
            )
        return float((found == known).mean())

    return score


def _want_classes(classes: Array, count: int) -> None:
    """Raise ``ConfigError`` unless labels are numbers of classes that there are."""
    if classes.dtype.kind not in "iu":
        raise ConfigError(f"labels: got {classes.dtype}; want the numbers of classes")
    strange = classes[(classes < 0) | (classes >= count)]
    if strange.size:
        raise ConfigError(
            f"labels: got class {strange.flat[0]}; the output has {count} classes, "
            f"0 to {count - 1}"
        )


def _batch(model: Model) -> int:
    """Examples of a batch: those the inputs are fixed to, if they are."""
    sizes = [info.shape[0] for info in model.inputs if info.shape]
    return next((size for size in sizes if isinstance(size, int)), BATCH)


def _batches(inputs: Mapping[str, Array], size: int) -> Batches:
    """Whole batches; the last may be less where no size is fixed."""
    count = len(next(iter(inputs.values())))
    return [
        {name: array[start : start + size] for name, array in inputs.items()}
        for start in range(0, count, size)
    ]
