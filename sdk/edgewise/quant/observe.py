"""What values of a model look like over calibration data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from edgewise.errors import ConfigError, DTypeError, ShapeError
from edgewise.ir.graph import Graph, Input, Value
from edgewise.ir.module import Module
from edgewise.ir.op import Array
from edgewise.model import INFER, Model
from edgewise.ops.shape import Reshape, Transpose
from edgewise.runtime.config import SessionConfig
from edgewise.runtime.session import Session

logger = logging.getLogger(__name__)
A_BATCH = 1 << 14  # numbers of a batch that are kept
MOST = 1 << 18  # numbers that are kept of a value in all
FEW = 2  # batches; fewer say little about ranges
RATE = 0.1  # of the newest batch in moving averages


class Seen:
    """A value over all batches.

    Attributes:
        low: The least number.
        high: The largest.
        average: Moving averages of the least and the largest of batches.
        means: Mean of every channel (the last axis), over all but it.
        batches: How many there were.
    """

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf
        self.average = (0.0, 0.0)
        self.means: Array = np.zeros(0)
        self.batches = 0
        self._kept: list[Array] = []

    @classmethod
    def within(cls, low: float, high: float) -> Self:
        """A value of which the range alone is known."""
        made = cls()
        made.low, made.high, made.average = low, high, (low, high)
        return made

    def add(self, x: Array) -> None:
        """One batch more."""
        if not x.size:
            return
        low, high = float(x.min()), float(x.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        rate = RATE if self.batches else 1.0
        ends = zip(self.average, (low, high), strict=True)
        self.average = tuple(old + rate * (new - old) for old, new in ends)  # type: ignore[assignment]
        self._mean(x)
        flat = x.reshape(-1)
        self._kept.append(flat[:: max(flat.size // A_BATCH, 1)].astype(np.float32))
        if sum(part.size for part in self._kept) > MOST:
            self._kept = [np.concatenate(self._kept)[::2]]

    def _mean(self, x: Array) -> None:
        rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
        mean = rows.mean(0, dtype=np.float64)
        self.batches += 1
        if self.means.shape == mean.shape:
            self.means = self.means + (mean - self.means) / self.batches
        else:
            self.means = mean

    @property
    def sample(self) -> Array:
        """Some of the numbers, evenly taken."""
        return np.concatenate(self._kept) if self._kept else np.zeros(1, np.float32)


def observed(
    model: Model, values: Sequence[Value], batches: Iterable[Mapping[str, Array]]
) -> dict[Value, Seen]:
    """What each value looks like.

    Raises:
        ConfigError: There are no batches, or a value is not finite in one.
    """
    graph = model.module.functions[INFER]
    names = tuple(f"{number}" for number in range(len(values)))
    watched = Graph(graph.inputs, tuple(values), names, {}, graph.binders)
    module = _with(model.module, watched)
    seen = {value: Seen() for value in values}
    count = 0
    with Session(Model(module), SessionConfig()) as session:
        for count, feed in enumerate(batches, 1):
            try:
                found = session.run(feed)
            except (ShapeError, DTypeError) as error:
                raise type(error)(f"calibration: batch {count}: {error}") from error
            for name, value in zip(names, values, strict=True):
                if not np.isfinite(found[name]).all():
                    raise ConfigError(
                        f"calibration: batch {count}: numbers are not finite at "
                        f"{_called(value)}; want finite inputs and weights"
                    )
                seen[value].add(found[name])
    if not count:
        raise ConfigError("calibration: got no batches; want some typical inputs")
    if any(not found.batches for found in seen.values()):
        raise ConfigError("calibration: got batches of no examples; want typical ones")
    return seen


def as_batches(calibration: object) -> tuple[Mapping[str, Array], ...]:
    """All batches at once: a guard runs over them again and again.

    Raises:
        ConfigError: They are none.
    """
    if calibration is None:
        return ()
    if isinstance(calibration, Mapping | np.ndarray | str):
        calibration = None  # one batch, or less: what it iterates over is none
    if not isinstance(calibration, Iterable):
        raise ConfigError(
            "calibration: want batches, a list of mappings of input names to arrays"
        )
    return tuple(calibration)


def _with(module: Module, graph: Graph) -> Module:
    return Module({**module.functions, INFER: graph}, module.variables, module.metadata)


def _called(value: Value) -> str:
    """A value by the input that it is, or by the node of the model that makes it."""
    source = value
    while isinstance(source.op, Transpose | Reshape):
        source = source.node.inputs[0] or source
    if isinstance(source.op, Input):
        return f"input {source.op.key!r}"
    return value.node.label or value.op.name


def warnings(
    seen: Mapping[Value, Seen], batches: Sequence[Mapping[str, Array]]
) -> tuple[str, ...]:
    """What is to be said of calibration data; logged, too."""
    notes = []
    if len(batches) < FEW:
        said = f"calibration had {len(batches)} batch: ranges may be too narrow"
        notes.append(said)
    notes += [
        f"{_called(value)} never changed: {found.low:g}"
        for value, found in seen.items()
        if found.low == found.high
    ]
    for note in notes:
        logger.warning("%s", note)
    return tuple(notes)
